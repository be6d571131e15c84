// Times to save and load a layout's state, from its bytes and the cluster's bandwidths.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// Sizes of one copy of the optimizer state, which a save writes. The ranks of each stage's first replica hold it.
struct StateParts {
  double rank_bytes = 0;        ///< of the fullest rank; stages differ
  double node_bytes = 0;        ///< of the fullest node
  std::int64_t nodes = 0;       ///< nodes that hold a part
  std::int64_t node_ranks = 0;  ///< most ranks on one node that hold a part
};
/// `elements`: per rank, by stage (state_elements_of_stages).
StateParts state_parts(const Layout& layout, const std::vector<double>& elements, double bytes_per_parameter,
                       std::int64_t gpus_per_node);

/// Seconds; see CheckpointTimes. `read` excludes the broadcast.
struct CheckpointSeconds {
  double blocking = 0, persist = 0, read = 0;
};
/// Uses measured storage rates (CheckpointSpec::rates) if present, else the cluster's. Throws Error{usage} if the
/// cluster describes no storage.
CheckpointSeconds checkpoint_seconds(const StudySpec& study, const StateParts& parts);

}  // namespace wt
