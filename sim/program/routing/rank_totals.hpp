// Routing of which only the rows that each rank received are known: not which of its experts they were for, nor where
// they came from.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/program/routing/routing.hpp"

namespace wt {

/// Rows of each rank's experts over those of the mean rank: [layer][step][rank].
using RankLoads = std::vector<std::vector<std::vector<double>>>;

/// Step i is the i-th recorded one. A rank's experts have the same part of its rows each, and every rank of its expert
/// group sends the same part of them, so that rows that came from another group count where they arrived; counts
/// therefore sum to tokens * top_k in the mean over all ranks alone. Layers and ranks beyond the recorded ones take the
/// loads of the first ones again. `expert_ranks`: ranks of an expert group; with 1 nothing travels, and every rank
/// keeps its own rows. Throws Error{usage} without loads, and for experts that the ranks do not share evenly.
std::unique_ptr<RoutingSource> rank_total_routing(const ModelSpec& model, const Microbatches& tokens,
                                                  std::int64_t expert_ranks, RankLoads loads);

}  // namespace wt
