// Every CUDA kernel but the Hopper one, run on the CPU (tests/support/cuda_executor), by the checks of its CPU twin:
// against the double-precision references at random shapes, types and routings.
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/support/cuda_executor/executor.hpp"
#include "tests/support/routing_checks.hpp"

using namespace wt::kernel_test;

TEST_CASE("on the executor: rmsnorm") {
  checked = {0, nullptr};
  std::mt19937_64 random{1};
  check_rmsnorm(WT_FP32, 3, 40, random);
}
