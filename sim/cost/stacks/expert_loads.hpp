// How uneven the rows of expert ranks were in a published run: what its row says, and where that says nothing, a
// recorded histogram; never even by default.
#pragma once
#include <string>

#include "sim/measurements/run_rows.hpp"

namespace wt {

struct ExpertLoads {
  std::string histogram;  ///< as read_routing() names it; empty = even
  double fullest = 1;     ///< rows of the fullest rank over the mean one's, mean over layers
  std::string assumed;    ///< what the source does not say, in words; empty = nothing
};

/// Even where the row says so; otherwise the model's own
/// histogram (configs/routing), or OLMoE's stretched over its experts, with ranks that hold neighbouring experts.
ExpertLoads expert_loads(const RunRow& run);

}  // namespace wt
