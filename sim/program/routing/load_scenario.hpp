// Expert loads as histograms: shipped ones, a file, or from any routing source.
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

/// Tokens per expert, one row per recorded layer (read_histogram); a model with more layers reuses the rows in order.
struct LoadScenario {
  std::string name;
  std::vector<std::vector<double>> counts;  ///< [row][expert], any positive scale
  Provenance evidence;
  std::optional<TrainedLoads> trained = {};  ///< set if not recorded: `counts` are the limit of large microbatches
};

/// Reads a histogram file (layer, expert, count), or one of configs/routing by name ("olmoe-c4"). Its evidence is the
/// text after "Evidence:" in a comment line; without one it is `assumed`. `experts` as in read_histogram. Throws
/// Error{usage}.
LoadScenario read_load_scenario(const std::string& name_or_file, std::int64_t experts);

/// The loads of another model as a proxy for one with other experts. Each layer's sorted loads are sampled at as many
/// points as this model has experts, and assigned in an arbitrary order. The unevenness is kept; no expert gets more
/// than all tokens (1 / top_k of the choices). Evidence: assumed.
LoadScenario stretched(const LoadScenario& recorded, const ModelSpec& model);

/// Loads that were not recorded, typical of models trained with this balancing; counts are for `model`. Evidence:
/// assumed.
LoadScenario trained_scenario(const std::string& name, const TrainedLoads& loads, Balancing balancing,
                              const ModelSpec& model);

/// Shares of every layer's choices in microbatches of `tokens` on each of `expert_ranks` source ranks. Rows sum to 1,
/// or to less where a capacity drops some. Recorded loads do not depend on `tokens`.
std::vector<std::vector<double>> shares_at(const LoadScenario& scenario, const ModelSpec& model, std::int64_t tokens,
                                           std::int64_t expert_ranks);

/// Shares of a layer, summing to 1; a model with more layers reuses the rows in order.
std::vector<double> shares_of(const LoadScenario& scenario, std::int64_t layer);

/// Loads of a routing source, summed over the source ranks and over these steps, microbatch 0, one row a layer.
LoadScenario load_scenario(const RoutingSource& routing, const std::string& name, std::int64_t layers,
                           std::int64_t source_ranks, const std::vector<std::int64_t>& steps, Provenance evidence);

}  // namespace wt
