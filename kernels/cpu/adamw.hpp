// AdamW on flat fp32 arrays, one pass. Needs -fno-math-errno: otherwise sqrtf keeps the loop scalar.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

inline void adamw_run(float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict g,
                      int64_t n, AdamwSettings s) {
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * s.grad_scale;
    const float first = m[i] + s.one_minus_beta1 * (gradient - m[i]);
    const float second = s.beta2 * v[i] + s.one_minus_beta2 * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * s.keep - s.step_size * first / (__builtin_sqrtf(second) * s.inverse_sqrt_bc2 + s.eps);
  }
}

inline WtStatus adamw(void*, float* p, float* m, float* v, const float* g, int64_t n, AdamwSettings s) {
  constexpr int64_t kRun =
      4096;  // whole cache lines and registers; fixed, so that runs and their tail do not depend on the threads
  for_each_row((n + kRun - 1) / kRun, kRun * 7 * static_cast<int64_t>(sizeof(float)), [=](int64_t run) {
    const int64_t at = run * kRun;
    adamw_run(p + at, m + at, v + at, g + at, n - at < kRun ? n - at : kRun, s);
  });
  return WT_OK;
}

}  // namespace
