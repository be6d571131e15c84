// The layout in which a run goes on when fewer ranks are left than its own layout needs, or more again.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "configs/files/run.hpp"

namespace wt {

/// Every arrangement of replicas, shards, experts and context that the run's model and global batch allow on `ranks`
/// ranks or fewer, a multiple of `unit`, with `min_replicas` at least. Everything else of the layout stays. The best
/// first: more ranks leave fewer tokens to each. Of equally many the run's smaller_layouts, which a planner chose by
/// prices, come before the others, in whole and in their order; without prices, fewer bytes have to be sent
/// (step_traffic_bytes).
std::vector<RunSpec> remaining_layouts(const RunSpec& run, std::int64_t ranks, std::int64_t unit = 1,
                                       std::int64_t min_replicas = 1);

/// Bytes that rank 0 sends in all collectives of a step: each by a ring, rows of tokens spread evenly over experts.
double step_traffic_bytes(const RunSpec& run);

}  // namespace wt
