// Routing by the names that people give: "balanced", "trained", a trainer's recording, histograms and families of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sim/program/routing/load_scenario.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

/// A trainer's routing.csv (one column an expert), not a histogram (layer, expert, count).
bool is_recording(const std::string& file);

/// The histograms that names stand for: files, names in configs/routing, families of them ("dbrx-proxy" is every
/// dbrx-proxy-*); "stretched-NAME" = those of NAME stretched over the model's experts; "balanced" alone = none.
/// "trained" = as models train that are balanced as this one (trained_loads.hpp), "trained-loss", "trained-bias" and
/// "trained-none" = balanced so, "capacity-X" = "trained" with rows above X times the balanced share dropped. Throws
/// Error{usage}.
std::vector<LoadScenario> read_scenarios(const std::vector<std::string>& names, const ModelSpec& model);

/// Every scenario's shares count alike; none = balanced. `tokens`: of one rank; `expert_ranks`: ranks of an expert
/// group. A smaller last microbatch is as uneven as the others.
std::unique_ptr<RoutingSource> mean_routing(const ModelSpec& model, const Microbatches& tokens,
                                            std::int64_t expert_ranks, const std::vector<LoadScenario>& scenarios);

struct NamedRouting {
  std::unique_ptr<RoutingSource> source;
  Evidence evidence = Evidence::assumed;
};
/// One recording, or what read_scenarios takes; none = balanced. Throws Error{usage}.
NamedRouting read_routing(const std::vector<std::string>& names, const ModelSpec& model, const Microbatches& tokens,
                          std::int64_t expert_ranks);

}  // namespace wt
