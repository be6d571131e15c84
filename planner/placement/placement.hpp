// Expert placement: which logical expert is in which slot, so that the expert rank with the most tokens has as few as
// possible. Ranks wait for each other at every layer's exchange, so a layer costs its largest load. Every expert rank
// has experts / expert_ranks slots, and experts have no copies. Loads are max/mean over the expert ranks: 1 = balanced,
// 1.5 = the slowest rank has 50 % more work than the mean.
//
// Up to 16 experts the result is proved optimal. Above, a bounded search reports its gap to a lower bound. A plan must
// help on workloads that it was not planned on: study_placements measures that.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"
#include "sim/program/routing/load_scenario.hpp"

namespace wt {

/// placement[layer][slot] = logical expert, as Layout::placement.
using Placement = std::vector<std::vector<std::int64_t>>;

struct PlacementOptions {
  std::int64_t node_limit = 200'000;  ///< of branch and bound above 16 experts; up to 16 it has no limit
  int kicks = 200;                    ///< perturbations of the local search above 16 experts
};

struct LayerPlacement {
  std::vector<std::int64_t> slots;  ///< logical expert per slot
  double before = 0;                ///< max/mean of the identity in its worst scenario
  double after = 0;                 ///< the same for `slots`
  double bound = 0;                 ///< lower bound for all placements
  bool proved = false;              ///< `after` is optimal
  std::int64_t nodes = 0;           ///< of the search tree
  double gap() const { return after / bound - 1; }
};

/// Places one layer for one or several scenarios at once (minimises the maximum of max/mean). counts:
/// [scenario][expert]. Experts stay on their rank if they can, and the identity is kept if nothing is better. Throws
/// Error{usage} when expert_ranks does not divide the experts, rows differ in length, or a row has a negative count or
/// sums to 0.
LayerPlacement place_layer(const std::vector<std::vector<double>>& counts, std::int64_t expert_ranks,
                           const PlacementOptions& options = {});

struct PlacementPlan {
  Placement placement;
  std::vector<LayerPlacement> layers;
  double before = 0, after = 0, bound = 0;  ///< means over the layers
  bool proved = false;                      ///< for every layer
};
/// Places all layers for all scenarios. Throws as place_layer, and without scenarios or for layers < 1.
PlacementPlan plan_placement(const std::vector<LoadScenario>& scenarios, std::int64_t layers, std::int64_t expert_ranks,
                             const PlacementOptions& options = {});

/// Mean over the layers of max/mean load over the expert ranks. An empty placement is the identity.
double placement_load(const LoadScenario& scenario, const Placement& placement, std::int64_t layers,
                      std::int64_t expert_ranks);

struct PlacementCandidate {
  std::string name;          ///< "identity", "planned on c4", "planned on the mean", "planned on the worst case"
  PlacementPlan plan;        ///< of the identity: empty placement, layers without search
  std::vector<double> load;  ///< by scenario
  double worst = 0;          ///< max of load
  /// Load on scenarios that the plan has not seen. For the two plans on all scenarios: each scenario in turn is left
  /// out of the planning. For the identity: all scenarios. Empty with fewer than two scenarios.
  std::optional<double> unseen_worst, unseen_mean;
};
struct PlacementStudy {
  std::vector<std::string> scenarios;
  std::vector<PlacementCandidate> candidates;  ///< the identity first
  /// The candidate with the least worst load, among those that are on average no worse than the identity on unseen
  /// scenarios; the first of equals. So an overfitted plan never replaces the identity.
  std::size_t chosen = 0;
};
PlacementStudy study_placements(const std::vector<LoadScenario>& scenarios, std::int64_t layers,
                                std::int64_t expert_ranks, const PlacementOptions& options = {});

}  // namespace wt
