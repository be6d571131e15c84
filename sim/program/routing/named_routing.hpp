// Routing by the names that people give: "balanced", a trainer's recording, histograms and families of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sim/program/routing/load_scenario.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

/// The histograms that names stand for: files, names in configs/routing, families of them ("dbrx-proxy" is every
/// dbrx-proxy-*); "stretched-NAME" = those of NAME stretched over the model's experts; "balanced" alone = none. Throws
/// Error{usage}.
std::vector<LoadScenario> read_scenarios(const std::vector<std::string>& names, const ModelSpec& model);

/// Every scenario's shares count alike; none = balanced. `tokens`: of one rank.
std::unique_ptr<RoutingSource> mean_routing(const ModelSpec& model, const Microbatches& tokens,
                                            const std::vector<LoadScenario>& scenarios);

struct NamedRouting {
  std::unique_ptr<RoutingSource> source;
  Evidence evidence = Evidence::assumed;
};
/// One recording, or what read_scenarios takes; none = balanced. Throws Error{usage}.
NamedRouting read_routing(const std::vector<std::string>& names, const ModelSpec& model, const Microbatches& tokens);

}  // namespace wt
