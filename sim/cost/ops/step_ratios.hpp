// How far off predictions of whole steps are. All ops of a step have this in common; it comes on top of the interval
// that an op's own time has.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// 80 % interval of measured over predicted steps; low <= 1 <= high.
struct StepRatios {
  double low = 1, high = 1;

  /// Times that were seen inside steps have it already.
  void widen(TimeEstimate& estimate) const {
    if (estimate.seen_in_steps) return;
    estimate.low_s *= low;
    estimate.high_s *= high;
  }
  /// What steps are off by has what their collectives are usually off by in it.
  void widen(CollectiveEstimate& estimate) const {
    estimate.relative_spread = std::max({estimate.relative_spread, 1 - low, high - 1});
  }
};

/// By kind of node (ClusterSpec::of_kind). Empty: nothing comes on top.
using StepRatiosByKind = std::vector<StepRatios>;
inline StepRatios on_kind(const StepRatiosByKind& off_by, std::size_t kind) {
  return off_by.empty() ? StepRatios{} : off_by.at(kind);
}

}  // namespace wt
