// How uneven the rows of expert ranks were in a published run: as its source states, or else as recordings of other
// models in training. Even loads are never assumed by default.
#pragma once
#include <string>

#include "sim/measurements/run_rows.hpp"

namespace wt {

struct ExpertLoads {
  std::string routing;  ///< a name for read_routing(); empty = even
  double fullest = 1;   ///< rows of the fullest rank over the mean rank's, averaged over layers
  std::string assumed;  ///< what is assumed because the source does not state it; empty = nothing
};

/// Even loads if the row says so. Otherwise loads typical of models in training whose router is balanced by the same
/// method (routing_for_model), with neighbouring experts on a rank.
ExpertLoads expert_loads(const RunRow& run);

}  // namespace wt
