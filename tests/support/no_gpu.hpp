// Device tests without a device: a line that ctest knows as skipped.
#pragma once
#include <cuda_runtime.h>

#include <catch2/catch.hpp>

namespace wt::test {

inline bool no_gpu() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0) return false;
  WARN("SKIPPED: no CUDA device");
  return true;
}

}  // namespace wt::test
