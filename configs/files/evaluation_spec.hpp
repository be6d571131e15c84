// What a run is evaluated on while it trains: `eval_loader` and the keys around it, as in LLM Foundry.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/dataset.hpp"
#include "configs/files/duration.hpp"

namespace wt {

struct EvalSet {
  std::string label;  ///< names its loss in evaluations.jsonl and in trackers
  DatasetSpec dataset;
  friend bool operator==(const EvalSet&, const EvalSet&) = default;
};

struct EvaluationSpec {
  std::vector<EvalSet> sets;
  std::int64_t interval = 0;         ///< steps between evaluations; 0: at the end alone. At the end there always is one
  bool first = false;                ///< also before the first step
  std::int64_t device_batch = 0;     ///< sequences that a rank has in a batch of subset_batches; 0: a microbatch's
  std::int64_t subset_batches = -1;  ///< batches of all ranks that are taken of each set, in order; -1: all of them
  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;

  /// Whether it is evaluated after so many steps of `steps`.
  bool due(std::int64_t step, std::int64_t steps) const;
};

/// eval_loader (a map, or a list with a label each), eval_interval, eval_first, eval_subset_num_batches and
/// device_eval_batch_size. Throws Error{usage}: unknown keys, the same label twice, a set that is mixed by proportions
/// (every sample counts once), settings without an eval_loader.
EvaluationSpec read_evaluation(YamlMap& map, const RunClock& clock);
/// What a set needs besides the sets before it: a label of its own, and no mixture. Throws Error{usage} naming `where`.
void check_eval_set(const std::vector<EvalSet>& before, const EvalSet& set, const std::string& where);
void evaluation_to_yaml(const EvaluationSpec& spec, YAML::Emitter& out);

}  // namespace wt
