// Lion on flat fp32 arrays, one pass.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

inline void lion_run(float* __restrict p, float* __restrict m, const float* __restrict g, int64_t n, LionSettings s) {
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * s.grad_scale, moment = m[i];
    const float update = moment + s.one_minus_beta1 * (gradient - moment);
    m[i] = moment + s.one_minus_beta2 * (gradient - moment);
    p[i] = p[i] * s.keep - (update > 0 ? s.step_size : update < 0 ? -s.step_size : 0.0f);
  }
}

inline WtStatus lion(void*, float* p, float* m, const float* g, int64_t n, LionSettings s) {
  constexpr int64_t kRun = 4096;  // as for AdamW
  for_each_row((n + kRun - 1) / kRun, kRun * 5 * static_cast<int64_t>(sizeof(float)), [=](int64_t run) {
    const int64_t at = run * kRun;
    lion_run(p + at, m + at, g + at, n - at < kRun ? n - at : kRun, s);
  });
  return WT_OK;
}

}  // namespace
