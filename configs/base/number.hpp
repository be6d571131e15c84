// Constants and conversions of numbers that many formulas share.
#pragma once
#include <cstdint>

namespace wt {

inline constexpr double kDay_s = 86400;
inline constexpr double kMiB_bytes = 1024.0 * 1024, kGiB_bytes = 1024 * kMiB_bytes;

/// Exact up to 2^53.
constexpr double as_double(std::int64_t value) { return static_cast<double>(value); }

/// a / b rounded up, for a >= 0 and b >= 1.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace wt
