// Seconds of two activities that overlap, but do not hide each other completely.
#pragma once
#include <algorithm>
#include <cmath>

namespace wt {

/// (a^power + b^power)^(1/power), power >= 1: with 1 they add up, with infinity the longer hides the shorter. Between
/// the longer and the sum, and growing with both. 0 if both are 0.
inline double overlapped_s(double a_s, double b_s, double power) {
  const double longer = std::max(a_s, b_s), shorter = std::min(a_s, b_s);
  return longer > 0 ? longer * std::pow(1 + std::pow(shorter / longer, power), 1 / power) : 0;
}

}  // namespace wt
