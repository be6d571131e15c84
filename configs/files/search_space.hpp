// The search space of a plan. An axis that a study omits is `auto`: every value that divides the sizes and that the
// stack's trainer supports.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"
#include "configs/files/recompute.hpp"

namespace wt {

class YamlMap;

/// Simulated ops (over all simulated ranks) that count as one simulation of the budget; about 30 ms.
inline constexpr std::int64_t kOpsOfSimulation = 32'000;

/// The map `search` of a study. An empty list is `auto`.
struct SearchSpec {
  std::vector<std::int64_t> shard_sizes, expert_degrees, microbatches, tensor_degrees, pipeline_degrees, virtual_stages,
      context_degrees;
  std::vector<std::int64_t> expert_tensor_degrees;    ///< 1, the tensor degree, or both
  std::vector<std::int64_t> optimizer_shard_degrees;  ///< ranks that share the optimizer state: shard x a divisor of
                                                      ///< replicate
  std::vector<std::int64_t> expert_copies;            ///< extra slots of a rank for copies of busy experts, from 0
  std::vector<Recompute> recompute;
  std::vector<Schedule> schedules;
  std::vector<Dispatcher> dispatchers;
  std::vector<CudaGraphs> cuda_graphs;
  std::vector<bool> context_ring, sequence_parallel, reshard_after_forward, reduce_every_microbatch, exchange_overlap;
  /// Words of the run key `precision`, or auto: all that stack and GPU have. Empty = the study's.
  std::vector<std::string> precisions;
  /// Budget in units of kOpsOfSimulation. The search ends earlier when its bound proves the answer.
  std::int64_t simulations = 128;
  /// Layouts within this share of the best count as equal, and the most robust of them wins. 0.02 is the regret that we
  /// aim for; replace it by the error validated on your machine.
  double tie = 0.02;
  /// The highest accepted probability that a rank's process needs more memory than usable. Predictions of stacks that
  /// nobody measured are a third off, and the first step shows what a run needs.
  double memory_risk = 0.2;
};

/// Strict. Throws Error{usage} with file, line, found, allowed.
SearchSpec search_from_yaml(YamlMap map);
/// The keys of axes that may be `auto`.
const std::vector<std::string>& search_axes();

}  // namespace wt
