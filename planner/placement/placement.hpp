// Expert placement: which logical expert sits in which slot, so that the expert rank with most tokens has as few as
// possible. Ranks wait for each other at every layer's exchange, so a layer costs its largest load. Every expert rank
// has experts / expert_ranks slots and no expert has copies. Loads are reported as max/mean over the expert ranks: 1 =
// balanced, 1.5 = the slowest rank has half more work than the average one.
//
// Up to 16 experts the answer is proved optimal; above, a bounded search gives its gap to a lower bound. A plan is only
// worth what it does on workloads it was not planned on: study_placements measures that.
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
  std::int64_t node_limit = 200'000;  ///< branch and bound above 16 experts; up to 16 it always runs to the end
  int kicks = 200;                    ///< perturbations of the local search above 16 experts
};

struct LayerPlacement {
  std::vector<std::int64_t> slots;  ///< logical expert per slot
  double before = 0;                ///< max/mean of the identity, worst scenario
  double after = 0;                 ///< of slots
  double bound = 0;                 ///< no placement is below
  bool proved = false;              ///< after is optimal
  std::int64_t nodes = 0;           ///< of the search tree
  double gap() const { return after / bound - 1; }
};

/// One layer over one or more scenarios at once (minimax of max/mean). counts: [scenario][expert]. Experts that can
/// stay on their rank do; the identity is kept where nothing is better. Throws Error{usage} when expert_ranks does not
/// divide the experts, rows differ in length, or a row has a negative count or sums to 0.
LayerPlacement place_layer(const std::vector<std::vector<double>>& counts, std::int64_t expert_ranks,
                           const PlacementOptions& options = {});

struct PlacementPlan {
  Placement placement;
  std::vector<LayerPlacement> layers;
  double before = 0, after = 0, bound = 0;  ///< means over the layers
  bool proved = false;                      ///< every layer is
};
/// All layers over all scenarios. Throws as place_layer, and when there is no scenario or layers < 1.
PlacementPlan plan_placement(const std::vector<LoadScenario>& scenarios, std::int64_t layers, std::int64_t expert_ranks,
                             const PlacementOptions& options = {});

/// Max/mean load over the expert ranks, mean over the layers. An empty placement is the identity.
double placement_load(const LoadScenario& scenario, const Placement& placement, std::int64_t layers,
                      std::int64_t expert_ranks);

struct PlacementCandidate {
  std::string name;          ///< "identity", "planned on c4", "planned on the mean", "planned on the worst case"
  PlacementPlan plan;        ///< of the identity: placement empty, layers without search
  std::vector<double> load;  ///< by scenario
  double worst = 0;          ///< max of load
  /// Load on scenarios the plan had not seen; for the two that see all, each scenario is left out in turn and the rest
  /// planned on. Empty with fewer than two scenarios; of the identity: all scenarios.
  std::optional<double> unseen_worst, unseen_mean;
};
struct PlacementStudy {
  std::vector<std::string> scenarios;
  std::vector<PlacementCandidate> candidates;  ///< the identity first
  /// The least worst load among candidates that on unseen scenarios are, on average, no worse than the identity; the
  /// first of equals. So a plan that only fits what it was planned on never replaces leaving the experts where they
  /// are.
  std::size_t chosen = 0;
};
PlacementStudy study_placements(const std::vector<LoadScenario>& scenarios, std::int64_t layers,
                                std::int64_t expert_ranks, const PlacementOptions& options = {});

}  // namespace wt
