// Every CUDA kernel but the Hopper one, run on the CPU (tests/support/cuda_executor): the tests of the CPU kernels,
// which are linked to this file, and here the shapes at which the CUDA kernels take other ways.
#define CATCH_CONFIG_EXTERNAL_INTERFACES  // for a listener
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/support/cuda_executor/executor.hpp"
#include "tests/support/routing_checks.hpp"

using namespace wt::kernel_test;
using wt::cuda_executor::Failure;

namespace {

/// A case runs in the same order of warps, with others before it or alone.
struct SameOrder : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo&) override {
    checked = {0, nullptr};
    wt::cuda_executor::set_seed(1);
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(SameOrder)

TEST_CASE("on the executor: rmsnorm of more rows than partial sums, and of rows beyond shared memory") {
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  std::mt19937_64 random{1};
  check_rmsnorm(dtype, 600, 7, random);
}
