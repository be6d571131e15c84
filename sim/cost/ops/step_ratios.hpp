// Errors of predicted steps. All ops of a step have them in common, in addition to the interval of each op's own time.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// 80 % interval of measured over predicted steps; low <= 1 <= high.
struct StepRatios {
  double low = 1, high = 1;

  /// Times from traces of steps include these errors already.
  void widen(TimeEstimate& estimate) const {
    if (estimate.seen_in_steps) return;
    estimate.low_s *= low;
    estimate.high_s *= high;
  }
  /// The errors of steps include the usual errors of their collectives, so the larger one counts.
  void widen(CollectiveEstimate& estimate) const {
    estimate.relative_spread = std::max({estimate.relative_spread, 1 - low, high - 1});
  }
};

/// By kind of node (ClusterSpec::of_kind). Empty = no widening.
using StepRatiosByKind = std::vector<StepRatios>;
inline StepRatios on_kind(const StepRatiosByKind& off_by, std::size_t kind) {
  return off_by.empty() ? StepRatios{} : off_by.at(kind);
}

}  // namespace wt
