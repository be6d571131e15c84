// Evaluation during training: `eval_loader` and the keys around it, as in LLM Foundry.
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
  std::int64_t interval = 0;         ///< steps between evaluations; 0 = only the one that always ends a run
  bool first = false;                ///< also before the first step
  std::int64_t device_batch = 0;     ///< sequences of a rank in a batch of subset_batches; 0: as in a microbatch
  std::int64_t subset_batches = -1;  ///< global batches used of each set, from its begin; -1: all
  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;

  /// Whether a run of `steps` is evaluated after `step`.
  bool due(std::int64_t step, std::int64_t steps) const;
};

/// eval_loader (a map, or a list with a label each), eval_interval, eval_first, eval_subset_num_batches and
/// device_eval_batch_size. Throws Error{usage}: unknown keys, a label twice, a set with proportions (every sample must
/// count once), settings without an eval_loader.
EvaluationSpec read_evaluation(YamlMap& map, const RunClock& clock);
/// Throws Error{usage} with `where` when `set` reuses a label of `before` or mixes streams by proportions.
void check_eval_set(const std::vector<EvalSet>& before, const EvalSet& set, const std::string& where);
void evaluation_to_yaml(const EvaluationSpec& spec, YAML::Emitter& out);

}  // namespace wt
