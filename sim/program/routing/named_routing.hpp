// Routing by name: "balanced", "trained", a trainer's recording, histograms and families of them.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "sim/program/routing/load_scenario.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

/// Whether the file is a trainer's routing.csv (one column per expert), not a histogram (layer, expert, count).
bool is_recording(const std::string& file);

/// The histograms for a list of names: files, names in configs/routing, families ("dbrx-proxy" is every dbrx-proxy-*);
/// "stretched-NAME" = those of NAME stretched over the model's experts; "balanced" alone = none. "trained" = typical of
/// models with the same balancing as this one (trained_loads.hpp); "trained-loss", "trained-bias" and "trained-none" =
/// with that balancing; "capacity-X" = "trained" with rows above X times the balanced share dropped. Throws
/// Error{usage}.
std::vector<LoadScenario> read_scenarios(const std::vector<std::string>& names, const ModelSpec& model);

/// The mean over the scenarios' shares; none = balanced. `tokens`: of one rank; `expert_ranks`: ranks of an expert
/// group. A smaller last microbatch is as uneven as the others.
std::unique_ptr<RoutingSource> mean_routing(const ModelSpec& model, const Microbatches& tokens,
                                            std::int64_t expert_ranks, const std::vector<LoadScenario>& scenarios);

struct NamedRouting {
  std::unique_ptr<RoutingSource> source;
  Evidence evidence = Evidence::assumed;
};
/// One recording, or names for read_scenarios; none = balanced. Throws Error{usage}.
NamedRouting read_routing(const std::vector<std::string>& names, const ModelSpec& model, const Microbatches& tokens,
                          std::int64_t expert_ranks);

}  // namespace wt
