// What a measurement's time means, for tables.
#pragma once
#include <optional>
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

struct Rate {
  double value = 0;  ///< a second
  std::string unit;  ///< "FLOP/s" or "B/s"
};

/// At the median: FLOP/s of products and attention (counter flops; of a gemm without it 2 rows n k), B/s of everything
/// else (shape or counter bytes). Empty for what is not timed in seconds, took none, or says neither.
std::optional<Rate> rate(const Measurement& measurement);
/// "99.8 GFLOP/s", "1.23 GB/s".
std::string to_string(const Rate& rate);

/// Half of the range that holds the middle 80 % of the samples, over the median; 0 for a median of 0.
double spread(const Measurement& measurement);

}  // namespace wt
