// Shared by the cases of aims: zeroed results of a kernel, and their allowed error.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "trainer/pch.hpp"

namespace wt {

/// bf16 has 8 bits: half a unit is 2e-3 of a value. Sums of products are rounded once, from fp32.
inline constexpr double kRounded = 4e-3;

/// Largest error relative to the largest value.
inline double error_of(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor right = want.to(at::kFloat);
  return ((got.to(at::kFloat) - right).abs().max() / right.abs().max().clamp_min(1e-30)).item<double>();
}

/// The larger error. NaN counts as infinite (std::max would drop it).
inline double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? INFINITY : std::max(a, b); }

inline at::Tensor zeros_on_device_of(const at::Tensor& like, std::vector<std::int64_t> shape, at::ScalarType type) {
  return at::zeros(shape, like.options().dtype(type));
}

}  // namespace wt
