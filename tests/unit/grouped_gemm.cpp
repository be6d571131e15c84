// The grouped GEMM's CPU twin against double precision, on every instruction set and every routing.
#include <catch2/catch.hpp>

#include "kernels/kernels.h"
#include "tests/fixtures/routing_checks.hpp"

using namespace wt::kernel_test;

TEST_CASE("grouped products of any routing are the double-precision ones") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const Routing routing =
      GENERATE(Routing::random, Routing::one_takes_all, Routing::one_row, Routing::nobody, Routing::skewed);
  const int64_t groups = GENERATE(1, 5), n = GENERATE(1, 19), k = GENERATE(3, 40);
  std::mt19937_64 random{uint64_t(groups * 100 + n + k)};
  check_products(dtype, draw_grouped(dtype, ends_of(routing, groups, 6, random), n, k, random));
}

TEST_CASE("grouped products refuse ends that fall, overshoot or leave rows over, and sizes out of range") {
  const std::vector<float> x(12, 1), weight(24, 1);
  std::vector<float> y(12, 7);
  const auto status = [&](std::vector<int32_t> ends, int64_t rows, int64_t n = 3) {
    return wt_grouped_gemm_forward(kCpu, WT_FP32, x.data(), weight.data(), ends.data(), rows, int64_t(ends.size()), n,
                                   4, y.data());
  };
  CHECK(status({2, 1}, 3) == WT_INVALID_ARGUMENT);
  CHECK(std::string(wt_kernel_error()) ==
        "wt_grouped_gemm_forward: ends[1] is 1; allowed 3 to 3; check what summed the groups' rows");
  CHECK(status({2, 1, 3}, 3) == WT_INVALID_ARGUMENT);
  CHECK(status({-1, 3}, 3) == WT_INVALID_ARGUMENT);
  CHECK(status({1, 2}, 3) == WT_INVALID_ARGUMENT);
  CHECK(status({1, 4}, 3) == WT_INVALID_ARGUMENT);
  CHECK(status({}, 0) == WT_INVALID_ARGUMENT);
  CHECK(status(std::vector<int32_t>(1025, 0), 0) == WT_INVALID_ARGUMENT);
  CHECK(status({1, 3}, 3, 0) == WT_INVALID_ARGUMENT);
  CHECK(status({1, 3}, int64_t{1} << 31) == WT_INVALID_ARGUMENT);
  CHECK(wt_grouped_gemm_backward_weight(kCpu, WT_FP32, nullptr, x.data(), std::vector<int32_t>{3}.data(), 3, 1, 4, 4,
                                        y.data()) == WT_INVALID_ARGUMENT);
  CHECK(y == std::vector<float>(12, 7));
  CHECK(status({1, 3}, 3) == WT_OK);
}
