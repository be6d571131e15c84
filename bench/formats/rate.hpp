// Converts a measurement's time to a rate, for tables.
#pragma once
#include <optional>
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

struct Rate {
  double value = 0;  ///< per second
  std::string unit;  ///< "FLOP/s" or "B/s"
  /// The bytes are those that time estimates count, not those that were moved: for cross_entropy fp32 logits in both
  /// passes, for permute one read of a row per choice. Such a rate may exceed the memory's bandwidth.
  bool estimated = false;
};
constexpr const char* kEstimatedRates =
    "est.: bytes of cross_entropy and permute are an estimate, not what moved, and no bandwidth.";

/// Rate at the median time: FLOP/s of products and attention (counter `flops`; for a gemm without it 2 rows n k), B/s
/// of everything else (`bytes` in shape or counters). Empty for other units, a time of 0, or unknown work.
std::optional<Rate> rate(const Measurement& measurement);
/// "99.8 GFLOP/s", "1.23 GB/s", "12190.38 GB/s est.".
std::string to_string(const Rate& rate);

/// Half the width of the range with the middle 80 % of the samples, over the median; 0 for a median of 0.
double spread(const Measurement& measurement);

}  // namespace wt
