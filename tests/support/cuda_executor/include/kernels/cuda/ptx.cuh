// Stands for kernels/cuda/ptx.cuh where kernels run on the CPU.
#pragma once
#include <cfloat>
#include <cmath>

namespace wt::kernels::cuda {

inline float exp2_flushed(float x) {
  const float result = exp2f(x);
  return result < FLT_MIN ? 0.0f : result;
}

inline void prefetch(const void*) {}

}  // namespace wt::kernels::cuda
