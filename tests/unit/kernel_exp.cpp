// The kernels' exponential against the library's, over every 509th fp32 bit pattern. Internal to kernels/cpu, and
// compiled here for the baseline instruction set.
#pragma GCC diagnostic ignored "-Wpsabi"
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cpu/vec.hpp"

TEST_CASE("exp is within two units in the last place, and right beyond fp32's range") {
  double worst = 0;
  for (uint64_t first = 0; first < (uint64_t{1} << 32); first += kLanes * 509) {
    float x[kLanes], y[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) {
      const uint32_t bits = static_cast<uint32_t>(first + static_cast<uint64_t>(i) * 509);
      memcpy(&x[i], &bits, 4);
    }
    store(y, exp(load(x)));
    for (int64_t i = 0; i < kLanes; ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      if (std::isnan(x[i])) {
        REQUIRE(std::isnan(y[i]));
      } else if (expected > 3.4028235e38) {
        REQUIRE(std::isinf(y[i]));
      } else {
        const double unit = expected == 0 ? 0x1p-149 : std::max(std::ldexp(1.0, std::ilogb(expected) - 23), 0x1p-149);
        worst = std::max(worst, std::abs(y[i] - expected) / unit);
      }
    }
  }
  INFO(worst);
  CHECK(worst <= 2);
}
