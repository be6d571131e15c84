// RMSNorm forward and backward, a row at a time.
#pragma once
#include <stdlib.h>  // no inline code, see vec.hpp

#include "kernels/cpu/vec.hpp"

namespace {

template <class E>
WtStatus rmsnorm_forward(void*, const void* x_TD, const void* gain_D, float eps, int64_t T, int64_t D, void* y_TD,
                         float* rstd_T) {
  const E* gain = static_cast<const E*>(gain_D);
  const bool streamed = y_TD != x_TD && streams<E>(y_TD, T, D);
  for_each_row(T, 2 * D * static_cast<int64_t>(sizeof(E)), [=](int64_t t) {
    const E* x = static_cast<const E*>(x_TD) + t * D;
    E* y = static_cast<E*>(y_TD) + t * D;
    Vec squares = {};
    for_blocks(D, [&](int64_t i, auto part) WT_LAMBDA {
      fetch(x + i + D);
      const Vec v = load(x + i, part);
      squares += v * v;
    });
    const float rstd = 1.0f / __builtin_sqrtf(sum_lanes(squares) / static_cast<float>(D) + eps);
    rstd_T[t] = rstd;
    for_blocks(D, [&](int64_t i, auto part)
                      WT_LAMBDA { put(y + i, load(x + i, part) * rstd * load(gain + i, part), part, streamed); });
  });
  return WT_OK;
}

/// Rows of a run. The gain's gradient is summed in order inside each run, and the runs' sums are added in order, so
/// that the bits do not depend on the number of threads.
constexpr int64_t kGainRows = 256;

template <class E>
WtStatus rmsnorm_backward(void*, const void* dy_TD, const void* x_TD, const void* gain_D, const float* rstd_T,
                          int64_t T, int64_t D, void* dx_TD, float* dgain_D) {
  const E* gain = static_cast<const E*>(gain_D);
  const bool streamed = dx_TD != dy_TD && streams<E>(dx_TD, T, D);
  const int64_t runs = (T + kGainRows - 1) / kGainRows;
  float* later_runs = nullptr;
  if (runs > 1) {
    later_runs = static_cast<float*>(calloc(static_cast<size_t>(runs - 1), static_cast<size_t>(D) * sizeof(float)));
    if (!later_runs) return out_of_memory("wt_rmsnorm_backward", (runs - 1) * D, "sums", "T");
  }
  for_each_row(runs, kGainRows * 3 * D * static_cast<int64_t>(sizeof(E)), [=](int64_t run) {
    float* dgain = run == 0 ? dgain_D : later_runs + (run - 1) * D;
    const int64_t end = run + 1 < runs ? (run + 1) * kGainRows : T;
    for (int64_t t = run * kGainRows; t < end; ++t) {
      const E* x = static_cast<const E*>(x_TD) + t * D;
      const E* dy = static_cast<const E*>(dy_TD) + t * D;
      E* dx = static_cast<E*>(dx_TD) + t * D;
      const float rstd = rstd_T[t];
      Vec dot = {};
      for_blocks(D, [&](int64_t i, auto part) WT_LAMBDA {
        fetch(dy + i + D), fetch(x + i + D);
        const Vec product = load(dy + i, part) * load(x + i, part);
        dot += product * load(gain + i, part);
        store(dgain + i, load(dgain + i, part) + product * rstd, part);
      });
      const float slope = rstd * rstd * rstd * (sum_lanes(dot) / static_cast<float>(D));
      for_blocks(D, [&](int64_t i, auto part) WT_LAMBDA {
        const Vec h = load(dy + i, part) * load(gain + i, part);
        put(dx + i, h * rstd - load(x + i, part) * slope, part, streamed);
      });
    }
  });
  for (int64_t run = 1; run < runs; ++run)
    for_blocks(D, [&](int64_t i, auto part) WT_LAMBDA {
      store(dgain_D + i, load(dgain_D + i, part) + load(later_runs + (run - 1) * D + i, part), part);
    });
  free(later_runs);
  return WT_OK;
}

}  // namespace
