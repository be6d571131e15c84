// Instructions for which CUDA has no function. The executor of tests/fixtures/cuda_executor replaces this header.
#pragma once

namespace wt::kernels::cuda {

/// 2^x within a few units in the last place; 0 below 2^-126.
__device__ inline float exp2_flushed(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ inline void prefetch(const void* from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }

}  // namespace wt::kernels::cuda
