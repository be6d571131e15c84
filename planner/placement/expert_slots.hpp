// Slots of expert ranks, with copies of busy experts, and packed by node. A rank has experts / expert_ranks slots, plus
// some for copies of the experts with the most tokens (DeepSeek's EPLB, arXiv 2412.19437, section 3.4.1). Copies share
// their expert's rows evenly. Each costs memory and an exchange of its gradient
// (sim/program/compose/expert_copies.hpp).
#pragma once
#include <cstdint>
#include <vector>

#include "planner/placement/placement.hpp"

namespace wt {

struct SlotOptions {
  std::int64_t further = 0;  ///< slots for copies on each rank
  /// 0: nodes are ignored. Otherwise tokens are balanced between nodes first, then inside each node.
  std::int64_t ranks_per_node = 0;
  Placement from = {};  ///< experts stay on their ranks of this placement if they can; empty = the identity
};

/// The slots of one layer for one or several scenarios at once (minimises the maximum of max/mean). counts:
/// [scenario][expert]. An expert has at most one copy per rank. Throws Error{usage} when expert_ranks does not divide
/// the experts, or ranks_per_node the ranks.
std::vector<std::int64_t> fill_slots(const std::vector<std::vector<double>>& counts, std::int64_t expert_ranks,
                                     const SlotOptions& options, const std::vector<std::int64_t>& from = {});
Placement fill_slots(const std::vector<LoadScenario>& scenarios, std::int64_t layers, std::int64_t expert_ranks,
                     const SlotOptions& options);

/// Mean over the layers of max/mean load over the expert ranks, or over `parts` groups of consecutive ranks (nodes). An
/// empty placement is the identity.
double slots_load(const LoadScenario& scenario, const Placement& placement, std::int64_t layers,
                  std::int64_t expert_ranks, std::int64_t parts = 0);

/// Experts that a rank receives (not held before) or sends, where each holder sends an equal share. Of the rank with
/// the most, summed over the layers.
double experts_moved(const Placement& from, const Placement& to, std::int64_t experts, std::int64_t layers,
                     std::int64_t expert_ranks);

}  // namespace wt
