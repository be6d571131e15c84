// What a measurement's time means, for tables.
#pragma once
#include <optional>
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

struct Rate {
  double value = 0;  ///< a second
  std::string unit;  ///< "FLOP/s" or "B/s"
  /// Bytes are those that a price counts and not those that moved: of cross_entropy fp32 logits in both passes, of
  /// permute a row read for each choice. Such a rate may be above what the memory can do.
  bool estimated = false;
};
constexpr const char* kEstimatedRates =
    "est.: bytes of cross_entropy and permute are an estimate, not what moved, and no bandwidth.";

/// At the median: FLOP/s of products and attention (counter flops; of a gemm without it 2 rows n k), B/s of everything
/// else (shape or counter bytes). Empty for what is not timed in seconds, took none, or says neither.
std::optional<Rate> rate(const Measurement& measurement);
/// "99.8 GFLOP/s", "1.23 GB/s", "12190.38 GB/s est.".
std::string to_string(const Rate& rate);

/// Half of the range that holds the middle 80 % of the samples, over the median; 0 for a median of 0.
double spread(const Measurement& measurement);

}  // namespace wt
