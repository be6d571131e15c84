// How uneven the rows of expert ranks were in a published run: as its source states, or else as recordings of other
// models in training. Even loads are never assumed by default.
#pragma once
#include <string>

#include "sim/measurements/run_rows.hpp"

namespace wt {

struct ExpertLoads {
  std::string routing;  ///< as read_routing() names it; empty = even
  double fullest = 1;   ///< rows of the fullest rank over the mean one's, mean over layers
  std::string assumed;  ///< what the source does not say, in words; empty = nothing
};

/// Even where the row says so; otherwise as models train that are balanced as the row's (routing_for_model), with ranks
/// that hold neighbouring experts.
ExpertLoads expert_loads(const RunRow& run);

}  // namespace wt
