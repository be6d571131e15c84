// Slots of expert ranks with copies of busy experts, and packed by node. A rank has experts / expert_ranks slots and
// some further ones, which go to copies of the experts with most tokens (DeepSeek's EPLB, arXiv 2412.19437, section
// 3.4.1). Copies share their expert's rows evenly; each costs memory, and the exchange of its gradient
// (sim/program/compose/expert_copies.hpp).
#pragma once
#include <cstdint>
#include <vector>

#include "planner/placement/placement.hpp"

namespace wt {

struct SlotOptions {
  std::int64_t further = 0;  ///< slots of a rank for copies
  /// Ranks of a node; 0: nodes count for nothing. Else tokens are evened out between nodes first, then inside of them.
  std::int64_t ranks_per_node = 0;
  Placement from = {};  ///< experts stay on their ranks of this one where they can; empty: those of the identity
};

/// Slots of one layer, for one or more scenarios at once (minimax of max/mean). counts: [scenario][expert]. No expert
/// has more copies than there are ranks. Throws Error{usage} when expert_ranks does not divide the experts, or
/// ranks_per_node the ranks.
std::vector<std::int64_t> fill_slots(const std::vector<std::vector<double>>& counts, std::int64_t expert_ranks,
                                     const SlotOptions& options, const std::vector<std::int64_t>& from = {});
Placement fill_slots(const std::vector<LoadScenario>& scenarios, std::int64_t layers, std::int64_t expert_ranks,
                     const SlotOptions& options);

/// Max/mean load over the expert ranks, or over `parts` neighbouring groups of them (nodes), mean over the layers. An
/// empty placement is the identity.
double slots_load(const LoadScenario& scenario, const Placement& placement, std::int64_t layers,
                  std::int64_t expert_ranks, std::int64_t parts = 0);

/// Experts that a rank gets and did not hold before, or sends to those that get them, each of its holders the same
/// share; of the rank with most, summed over the layers.
double experts_moved(const Placement& from, const Placement& to, std::int64_t experts, std::int64_t layers,
                     std::int64_t expert_ranks);

}  // namespace wt
