// What saving and loading the state of a layout takes, from its bytes and the cluster's bandwidths.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// Of one copy of the optimizer state, which is what a save writes: the ranks of the first replica of each stage have
/// it.
struct StateParts {
  double rank_bytes = 0;        ///< of the fullest rank: stages differ
  double node_bytes = 0;        ///< of the fullest node
  std::int64_t nodes = 0;       ///< that have any
  std::int64_t node_ranks = 0;  ///< the most on one node that have any
};
/// `elements` of a rank of each stage (state_elements_of_stages).
StateParts state_parts(const Layout& layout, const std::vector<double>& elements, double bytes_per_parameter,
                       std::int64_t gpus_per_node);

/// Seconds; see CheckpointTimes. `read` without the broadcast.
struct CheckpointSeconds {
  double blocking = 0, persist = 0, read = 0;
};
/// By what was measured of the storage (CheckpointSpec::rates), else by the cluster's. Throws Error{usage} where the
/// cluster describes no storage.
CheckpointSeconds checkpoint_seconds(const StudySpec& study, const StateParts& parts);

}  // namespace wt
