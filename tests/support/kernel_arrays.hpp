// Arrays for the kernel tests: values drawn from a seed and rounded to the dtype under test, so that the
// double-precision reference starts from the very numbers that the kernel reads.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace wt::kernel_test {

using Doubles = std::vector<double>;

/// Bytes of `values` in `dtype`, bf16 rounded to nearest even (finite values only).
inline std::vector<unsigned char> pack(WtDtype dtype, const Doubles& values) {
  const size_t width = dtype == WT_FP32 ? 4 : 2;
  std::vector<unsigned char> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = static_cast<float>(values[i]);
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if (dtype == WT_BF16) bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    std::memcpy(&bytes[i * width], &bits, width);  // the low bytes come first
  }
  return bytes;
}

inline Doubles unpack(WtDtype dtype, const std::vector<unsigned char>& bytes) {
  const size_t width = dtype == WT_FP32 ? 4 : 2;
  Doubles values(bytes.size() / width);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i * width], width);
    if (dtype == WT_BF16) bits <<= 16;
    float x;
    std::memcpy(&x, &bits, 4);
    values[i] = x;
  }
  return values;
}

/// Normal deviates times `spread`, exactly representable in `dtype`.
inline Doubles draw(std::mt19937_64& random, WtDtype dtype, int64_t n, double spread = 1) {
  std::normal_distribution<double> normal(0, spread);
  Doubles values(static_cast<size_t>(n));
  for (double& value : values) value = normal(random);
  return unpack(dtype, pack(dtype, values));
}

inline std::vector<float> floats(const Doubles& values) { return {values.begin(), values.end()}; }
inline Doubles doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

/// Largest |a - b| / (1 + |b|); infinite if the sizes differ or a is not finite.
inline double distance(const Doubles& a, const Doubles& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double here = std::abs(a[i] - b[i]) / (1 + std::abs(b[i]));
    if (!(here <= largest)) largest = std::isfinite(here) ? here : INFINITY;
  }
  return largest;
}

/// |a - b| relative to the root mean square of b, as sums that may cancel want it; infinite if sizes differ or a is not
/// finite.
inline double error_of_sums(const Doubles& a, const Doubles& b) {
  double squares = 0, largest = 0;
  if (a.size() != b.size()) return INFINITY;
  for (double value : b) squares += value * value;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i])) return INFINITY;
    largest = std::max(
        largest, std::abs(a[i] - b[i]) / (1 + std::abs(b[i]) + std::sqrt(squares / static_cast<double>(b.size()))));
  }
  return largest;
}

/// What rounding allows: fp32 arithmetic over a few hundred terms, or one bf16 rounding (half of 2^-7) on top.
inline double tolerance(WtDtype dtype) { return dtype == WT_FP32 ? 4e-6 : 4.1e-3; }

}  // namespace wt::kernel_test
