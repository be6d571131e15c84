// Block quantisation against its scalar reference and its error bounds, on every instruction set of this machine.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "tests/fixtures/kernel_checks.hpp"

using namespace wt::kernel_test;
namespace reference = wt::reference;

TEST_CASE("blocks come back within half a step of int8, and of fp8's own steps") {
  if (!use_isa()) return;
  const WtDtype dtype = GENERATE(WT_FP32, WT_BF16);
  const WtBlockFormat format = GENERATE(WT_INT8, WT_FP8);
  const int64_t D = GENERATE(1, 17, 128, 300);
  std::mt19937_64 random{uint64_t(D)};
  check_blocks(dtype, format, 5, D, random);
}

TEST_CASE("codes and scales are the scalar reference's") {
  if (!use_isa()) return;
  const WtBlockFormat format = GENERATE(WT_INT8, WT_FP8);
  std::mt19937_64 random{3};
  const Doubles x = draw(random, WT_FP32, 2 * 200);
  const Packed packed = quantize(WT_FP32, format, x, 2);
  const auto [codes, scales] = reference::quantize_blocks(x, 2, format == WT_FP8);
  CHECK(distance(doubles(packed.scale), scales) < 1e-7);
  std::size_t off = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const double found = format == WT_FP8 ? reference::fp8_value(packed.q[i]) : static_cast<signed char>(packed.q[i]);
    off += found != codes[i];
  }
  CHECK(off == 0);
}

TEST_CASE("halves round to even, and every fp8 code comes back as it was") {
  if (!use_isa()) return;
  const Packed halves = quantize(WT_FP32, WT_INT8, {127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5}, 1);
  CHECK(std::vector<int>(halves.q.begin(), halves.q.end()) == std::vector<int>{127, 0, 2, 2, 0, 256 - 2, 256 - 126});
  Doubles values;
  for (int code = 0; code < 256; ++code)
    if ((code & 0x7f) != 0x7f) values.push_back(reference::fp8_value(static_cast<unsigned char>(code)));
  values.resize(256, 448);  // two blocks, each with the largest value: scale 1
  values[0] = -448;
  CHECK(dequantize(WT_FP32, WT_FP8, quantize(WT_FP32, WT_FP8, values, 1), 1) == values);
}

TEST_CASE("zeros stay zeros; a NaN or an infinity makes its block NaN and no other") {
  if (!use_isa()) return;
  const WtBlockFormat format = GENERATE(WT_INT8, WT_FP8);
  const double bad = GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity());
  Doubles x(3 * 128, 1.0);
  std::fill(x.begin(), x.begin() + 128, 0.0);
  x[1] = 1e-35;
  x[128 + 40] = bad;
  const Doubles back = dequantize(WT_FP32, format, quantize(WT_FP32, format, x, 1), 1);
  for (size_t i = 0; i < 128; ++i) {
    CHECK(back[i] == 0);
    CHECK(std::isnan(back[128 + i]));
    CHECK(back[256 + i] == Approx(1));
  }
}

TEST_CASE("bad arguments of block quantisation are refused") {
  float x[4] = {}, scale = 0;
  unsigned char q[4];
  CHECK(wt_quantize_blocks(kCpu, WT_FP32, static_cast<WtBlockFormat>(2), x, 1, 4, q, &scale) == WT_INVALID_ARGUMENT);
  CHECK_THAT(wt_kernel_error(), Catch::Contains("format is 2; allowed at most WT_FP8 = 1"));
  CHECK(wt_quantize_blocks(kCpu, WT_FP32, WT_INT8, x, 1, 0, q, &scale) == WT_INVALID_ARGUMENT);
  CHECK(wt_quantize_blocks(kCpu, WT_FP32, WT_INT8, nullptr, 1, 4, q, &scale) == WT_INVALID_ARGUMENT);
  CHECK(wt_dequantize_blocks(kCpu, WT_FP32, WT_INT8, q, nullptr, 1, 4, x) == WT_INVALID_ARGUMENT);
  CHECK(wt_dequantize_blocks(kCpu, WT_FP32, WT_FP8, q, &scale, -1, 4, x) == WT_INVALID_ARGUMENT);
  CHECK(wt_quantize_blocks(kCpu, WT_FP32, WT_INT8, nullptr, 0, 4, nullptr, nullptr) == WT_OK);
}
