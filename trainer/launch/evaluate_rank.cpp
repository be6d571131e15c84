#include "trainer/launch/evaluate_rank.hpp"

#include <algorithm>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "trainer/communication/numbers_of_ranks.hpp"
#include "trainer/device/clocks.hpp"
#include "trainer/model/example_batch.hpp"
#include "trainer/pch.hpp"

namespace wt {

Evaluator::Evaluator(const EvaluationSpec& spec) : spec_(spec) {
  for (const EvalSet& set : spec.sets) data_.push_back(std::make_unique<ShardCache>(set.dataset));
}

void Evaluator::check(const RunSpec& run) const {
  for (std::size_t set = 0; set < data_.size(); ++set) {
    RunSpec of_set = run;
    of_set.dataset = spec_.sets[set].dataset;
    if (of_set.dataset.finetuning)
      ExampleBatches(*data_[set], of_set.dataset, of_set);
    else
      is_last_target_missing(*data_[set], of_set);
  }
}

void Evaluator::after_step(std::int64_t step, const RunSpec& run, Executor& executor, Communicators& communicators,
                           std::span<const std::int64_t> positions, Recorder& recorder) const {
  if (!spec_.due(step, run.steps)) return;
  for (std::size_t set = 0; set < spec_.sets.size(); ++set)
    recorder.evaluation(evaluate(set, step, run, executor, communicators, positions));
}

EvaluationLine Evaluator::evaluate(std::size_t set, std::int64_t step, const RunSpec& run, Executor& executor,
                                   Communicators& communicators, std::span<const std::int64_t> positions) const {
  const double begin_s = Clocks::now().wall_s;
  const std::int64_t ranks = run.layout.data_ranks(), rank = communicators.rank() / run.layout.context;
  const std::int64_t each = executor.sequences().of(0), size = data_[set]->size();
  const std::int64_t batch = (spec_.device_batch > 0 ? spec_.device_batch : run.layout.microbatch) * ranks;
  const std::int64_t samples = spec_.subset_batches < 0 ? size : std::min(size, spec_.subset_batches * batch);
  const std::int64_t microbatches = ceil_div(ceil_div(samples, ranks), each);
  RunSpec of_set = run;
  of_set.dataset = spec_.sets[set].dataset;
  std::optional<ExampleBatches> examples;
  bool last_target_missing = false;  // its samples may have a target for the last token, unlike the run's
  if (of_set.dataset.finetuning)
    examples.emplace(*data_[set], of_set.dataset, of_set);
  else
    last_target_missing = is_last_target_missing(*data_[set], of_set);
  double targets = 0;
  const double own = executor.evaluate(step, microbatches, [&](int microbatch) {
    std::vector<std::int64_t> ids;
    std::vector<PackedExamples> sequences;
    for (std::int64_t i = 0; i < each; ++i) {
      const std::int64_t id = (microbatch * each + i) * ranks + rank;
      ids.push_back(id < samples ? id : kNoSample);
      sequences.push_back({ids.back()});
    }
    Microbatch loaded = examples ? examples->load(sequences, positions)
                                 : load_microbatch(*data_[set], of_set, ids, positions, last_target_missing);
    targets += as_double(targets_in(loaded));
    return loaded;
  });
  const at::Tensor sums = numbers_of_ranks(communicators, run.layout.world(), {own, targets}).sum(0);
  if (sums[1].item<double>() == 0)
    throw_usage("evaluation '{}': found no token to learn in {} samples, allowed is at least one; check {}",
                spec_.sets[set].label, samples, of_set.dataset.folder().string());
  EvaluationLine result;
  result.step = step, result.label = spec_.sets[set].label, result.samples = samples;
  result.targets = sums[1].item<double>(), result.loss = sums[0].item<double>() / result.targets;
  result.seconds = Clocks::now().wall_s - begin_s;
  return result;
}

}  // namespace wt
