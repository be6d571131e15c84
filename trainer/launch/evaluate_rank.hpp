// Evaluation during training: the cross-entropy on the sets of `eval_loader`. Each sample counts once, and the result
// is the same in any layout.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/data/shard_cache.hpp"
#include "trainer/executor/executor.hpp"
#include "trainer/executor/recorder.hpp"

namespace wt {

class Evaluator {
 public:
  /// Opens the sets. Throws as ShardCache.
  explicit Evaluator(const EvaluationSpec& spec);
  /// Reads the first sample of each set. Throws Error{usage} if it is too short for the run.
  void check(const RunSpec& run) const;

  /// Collective. Evaluates if due after `step` steps. Samples go to the ranks in turn; ranks without one get sequences
  /// without targets. Sums are fp64, added in rank order.
  void after_step(std::int64_t step, const RunSpec& run, Executor& executor, Communicators& communicators,
                  std::span<const std::int64_t> positions, Recorder& recorder) const;

 private:
  EvaluationLine evaluate(std::size_t set, std::int64_t step, const RunSpec& run, Executor& executor,
                          Communicators& communicators, std::span<const std::int64_t> positions) const;

  const EvaluationSpec& spec_;
  std::vector<std::unique_ptr<ShardCache>> data_;  ///< by set
};

}  // namespace wt
