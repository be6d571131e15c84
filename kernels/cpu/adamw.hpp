// AdamW on flat fp32 arrays, one pass. Compiled with -fno-math-errno, without which sqrtf keeps the loop scalar.
#pragma once
#include "kernels/cpu/vec.hpp"

namespace {

inline WtStatus adamw(void*, float* __restrict p, float* __restrict m, float* __restrict v, const float* __restrict g,
                      int64_t n, AdamwSettings s) {
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = g[i] * s.grad_scale;
    const float first = m[i] + s.one_minus_beta1 * (gradient - m[i]);
    const float second = s.beta2 * v[i] + s.one_minus_beta2 * gradient * gradient;
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * s.keep - s.step_size * first / (__builtin_sqrtf(second) * s.inverse_sqrt_bc2 + s.eps);
  }
  return WT_OK;
}

}  // namespace
