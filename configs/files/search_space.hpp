// What the search of a plan may choose from. An axis that a study does not name is `auto`: everything that divides and
// that the stack's trainer runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/recompute.hpp"

namespace wt {

class YamlMap;

/// Ops of simulated ranks that a budget of simulations counts as one, about 30 ms: a larger one counts as several.
inline constexpr std::int64_t kOpsOfSimulation = 32'000;

/// The map `search` of a study. Empty lists are `auto`.
struct SearchSpec {
  std::vector<std::int64_t> shard_sizes, expert_degrees, microbatches, tensor_degrees, pipeline_degrees, virtual_stages,
      context_degrees;
  std::vector<std::int64_t> expert_tensor_degrees;    ///< 1, the tensor degree, or both
  std::vector<std::int64_t> optimizer_shard_degrees;  ///< ranks that share the optimizer state: shard x a divisor of
                                                      ///< replicate
  std::vector<std::int64_t> expert_copies;            ///< slots of a rank for copies of busy experts, from 0
  std::vector<Recompute> recompute;
  std::vector<Schedule> schedules;
  std::vector<Dispatcher> dispatchers;
  std::vector<CudaGraphs> cuda_graphs;
  std::vector<bool> context_ring, sequence_parallel, reshard_after_forward, reduce_every_microbatch, exchange_overlap;
  /// Budget (kOpsOfSimulation); the search ends earlier when its bound proves the answer.
  std::int64_t simulations = 128;
  /// Layouts this close to the best are a tie, broken by robustness. 0.02 is the regret that we aim for; replace it by
  /// the error validated on your machine.
  double tie = 0.02;
  /// The largest accepted probability that a rank's process needs more memory than it may use.
  double memory_risk = 0.1;
};

/// Strict. Throws Error{usage} with file, line, found, allowed.
SearchSpec search_from_yaml(YamlMap map);
/// Its axes by their keys, each of which may be `auto`.
const std::vector<std::string>& search_axes();

}  // namespace wt
