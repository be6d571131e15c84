#include "trainer/launch/step_batches.hpp"

#include <algorithm>

#include "configs/base/number.hpp"
#include "trainer/model/attention.hpp"
#include "trainer/model/batch.hpp"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// Batches that hold `predownload` samples that a rank reads: of examples, all. Without a store nothing is fetched.
std::int64_t batches_ahead(const RunSpec& run, const BatchShare& share) {
  constexpr std::int64_t kBatchesAhead = 8;  // Streaming's
  if (!run.dataset.predownload) return kBatchesAhead;
  const std::int64_t of_batch = run.dataset.finetuning ? run.samples_per_step() : share.count;
  return ceil_div(*run.dataset.predownload, std::max<std::int64_t>(1, of_batch));
}

}  // namespace

StepBatches::StepBatches(const RunSpec& run, const RankWork& work, const ShardCache& data, Sampler& sampler,
                         std::int64_t rank, const std::vector<PackedExamples>& waiting)
    : run_(run),
      work_(work),
      data_(data),
      positions_(context_positions(run.seq, run.layout.context, rank % run.layout.context)),
      ahead_(
          sampler, run.samples_per_step(), [&run](std::int64_t batch) { return run.resilience.skips(batch); },
          batches_ahead(run, work.share),
          [this](const std::vector<std::int64_t>& samples) {
            data_.prefetch(examples_ ? std::span(samples) : own_of(samples));
          }) {
  if (run.dataset.finetuning) examples_.emplace(data, run.dataset, run).restore(waiting);
}

StepBatches::Step StepBatches::next() {
  Step step{ahead_.next()};
  if (examples_) {
    step.examples = examples_->step(step.drawn.batch.samples);
    step.drawn.after.waiting = examples_->waiting();
  }
  return step;
}

Microbatch StepBatches::load(const Step& step, int microbatch) const {
  if (examples_)
    return examples_->load(microbatch_samples(work_, own_of(step.examples->sequences), microbatch), positions_);
  return load_microbatch(data_, run_, microbatch_samples(work_, own_of(step.drawn.batch.samples), microbatch),
                         positions_, work_.last_target_missing);
}

}  // namespace wt
