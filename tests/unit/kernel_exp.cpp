// The kernels' exponential and sigmoid against the library's, over every 509th fp32 bit pattern. Internal to
// kernels/cpu, and compiled here for the baseline instruction set.
#pragma GCC diagnostic ignored "-Wpsabi"
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cpu/vec.hpp"

namespace {

/// check(x, kernel of x) for every 509th bit pattern.
template <class Kernel, class Check>
void for_patterns(Kernel kernel, Check check) {
  for (uint64_t first = 0; first < (uint64_t{1} << 32); first += kLanes * 509) {
    float x[kLanes], y[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const uint32_t bits = static_cast<uint32_t>(first + static_cast<uint64_t>(i) * 509);
      memcpy(&x[i], &bits, 4);
    }
    kernel(x, y);
    for (int64_t i = 0; i < kLanes; ++i) check(x[i], y[i]);
  }
}

}  // namespace

TEST_CASE("exp is within two units in the last place, and right beyond fp32's range") {
  double worst = 0;
  for_patterns([](const float* x, float* y) { store(y, exp(load(x))); },
               [&worst](float x, float y) {
                 const double expected = std::exp(static_cast<double>(x));
                 if (std::isnan(x)) {
                   REQUIRE(std::isnan(y));
                 } else if (expected > 3.4028235e38) {
                   REQUIRE(std::isinf(y));
                 } else {
                   const double unit =
                       expected == 0 ? 0x1p-149 : std::max(std::ldexp(1.0, std::ilogb(expected) - 23), 0x1p-149);
                   const double error = std::abs(y - expected) / unit;
                   if (!(error <= worst)) worst = error;  // a NaN, too
                 }
               });
  INFO(worst);
  CHECK(worst <= 2);
}

TEST_CASE("the sigmoid of bf16 numbers is within 2e-5, zero below -87 and one above 17") {
  double worst = 0;
  for_patterns([](const float* x, float* y) { store(y, quick_sigmoid(load(x))); },
               [&worst](float x, float y) {
                 const double expected = 1 / (1 + std::exp(-static_cast<double>(x)));
                 if (std::isnan(x)) {
                   REQUIRE(std::isnan(y));
                 } else if (x < -87) {
                   REQUIRE(y == 0);
                 } else if (x > 17) {
                   REQUIRE(y == 1);
                 } else {
                   const double error = std::abs(y / expected - 1);
                   if (!(error <= worst)) worst = error;  // a NaN, too
                 }
               });
  INFO(worst);
  CHECK(worst <= 2e-5);
}
