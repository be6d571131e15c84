// Exact conversion of 16-bit floats to fp32, without LibTorch.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

namespace wt {

inline float float_of_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

/// IEEE 754 binary16: 1 sign, 5 exponent (bias 15; fp32 127) and 10 fraction bits (fp32 23).
inline float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 31u, fraction = bits & 1023u;
  if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24f, std::bit_cast<float>(sign | 1u));
  return std::bit_cast<float>(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

}  // namespace wt
