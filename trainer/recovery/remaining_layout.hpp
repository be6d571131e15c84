// The layout of a run when it has fewer ranks than its own layout needs, or more ranks again.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/run.hpp"

namespace wt {

/// All combinations of replicas, shards, experts and context that the model and global batch allow on at most `ranks`
/// ranks, a multiple of `unit`, with at least `min_replicas`. The rest of the layout is kept. The best comes first:
/// more ranks, with fewer tokens each. Among equally many ranks, the run's smaller_layouts come first, in their order,
/// because a planner chose them by predicted times. The others follow by bytes sent (step_traffic_bytes), fewest first.
std::vector<RunSpec> remaining_layouts(const RunSpec& run, std::int64_t ranks, std::int64_t unit = 1,
                                       std::int64_t min_replicas = 1);

/// Bytes that rank 0 sends in all collectives of a step, as rings, with rows of tokens spread evenly over experts.
double step_traffic_bytes(const RunSpec& run);

}  // namespace wt
