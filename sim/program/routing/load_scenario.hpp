// Loads of experts as histograms: shipped ones, a file, or any routing source.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/evidence.hpp"
#include "configs/files/model.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/program/routing/trained_loads.hpp"

namespace wt {

/// Tokens per expert, one row a recorded layer (read_histogram); a model with more layers reuses the rows in order.
struct LoadScenario {
  std::string name;
  std::vector<std::vector<double>> counts;  ///< [row][expert], any positive scale
  Provenance evidence;
  std::optional<TrainedLoads> trained = {};  ///< not recorded: `counts` are those of endless microbatches (shares_at)
};

/// A histogram file (layer, expert, count), or the name of one in configs/routing ("olmoe-c4"). Its evidence is what a
/// comment line of the file says after "Evidence:"; a file that says nothing is `assumed`. `experts` as in
/// read_histogram. Throws Error{usage}.
LoadScenario read_load_scenario(const std::string& name_or_file, std::int64_t experts);

/// The loads of another model as a stand-in for one with other experts: each layer's loads in order of size, read off
/// at as many places as this model has experts, and dealt out in an order of no meaning. How uneven they are stays; no
/// expert gets more than all tokens (1 / top_k of the choices). Evidence: assumed.
LoadScenario stretched(const LoadScenario& recorded, const ModelSpec& model);

/// Loads that nobody recorded, as models train that are balanced so; counts for `model`. Evidence: assumed.
LoadScenario trained_scenario(const std::string& name, const TrainedLoads& loads, Balancing balancing,
                              const ModelSpec& model);

/// Shares of every layer's choices in microbatches of `tokens` of each of `expert_ranks` source ranks. Rows sum to 1,
/// or to less where a capacity drops some. Recorded loads do not depend on tokens.
std::vector<std::vector<double>> shares_at(const LoadScenario& scenario, const ModelSpec& model, std::int64_t tokens,
                                           std::int64_t expert_ranks);

/// Shares of a layer, summing to 1; a model with more layers reuses the rows in order.
std::vector<double> shares_of(const LoadScenario& scenario, std::int64_t layer);

/// Loads of a routing source, summed over the source ranks and over these steps, microbatch 0, one row a layer.
LoadScenario load_scenario(const RoutingSource& routing, const std::string& name, std::int64_t layers,
                           std::int64_t source_ranks, const std::vector<std::int64_t>& steps, Provenance evidence);

}  // namespace wt
