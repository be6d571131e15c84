// Routing for which only each rank's number of received rows is known, but neither the experts nor the origin of the
// rows.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/program/routing/routing.hpp"

namespace wt {

/// Rows of each rank's experts over the mean of all ranks: [layer][step][rank].
using RankLoads = std::vector<std::vector<std::vector<double>>>;

/// Step i is the i-th recorded one. A rank's rows are split equally over its experts and over the source ranks of its
/// expert group. Rows that came from another group count in the group where they arrived, so that counts sum to tokens
/// * top_k only in the mean over all ranks. Layers and ranks beyond the recorded ones reuse the loads of the first
/// ones. `expert_ranks`: ranks of an expert group; with 1 nothing is exchanged, and every rank keeps its own rows.
/// Throws Error{usage} without loads, and for experts that the ranks do not share evenly.
std::unique_ptr<RoutingSource> rank_total_routing(const ModelSpec& model, const Microbatches& tokens,
                                                  std::int64_t expert_ranks, RankLoads loads);

}  // namespace wt
