// The batches of a rank, step by step: drawn ahead so that their shards are fetched meanwhile, and loaded microbatch by
// microbatch.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/data/batches_ahead.hpp"
#include "trainer/data/sample_order.hpp"
#include "trainer/data/shard_cache.hpp"
#include "trainer/model/example_batch.hpp"
#include "trainer/model/rank_work.hpp"

namespace wt {

class StepBatches {
 public:
  /// From where the sampler is; `waiting`: examples that earlier steps have drawn and no step has taken. All outlive
  /// this.
  StepBatches(const RunSpec& run, const RankWork& work, const ShardCache& data, Sampler& sampler, std::int64_t rank,
              const std::vector<PackedExamples>& waiting);
  StepBatches(const StepBatches&) = delete;
  StepBatches& operator=(const StepBatches&) = delete;

  struct Step {
    BatchAhead drawn;                          ///< `after` with what is waiting behind it
    std::optional<ExampleStep> examples = {};  ///< of finetuning data
  };
  /// Throws as BatchesAhead::next and ExampleBatches::step.
  Step next();
  /// Of the rank's part of that step.
  Microbatch load(const Step& step, int microbatch) const;
  /// Of a sequence, those that the rank has.
  const std::vector<std::int64_t>& positions() const { return positions_; }

 private:
  template <class Sample>
  std::span<const Sample> own_of(const std::vector<Sample>& samples) const {
    return std::span(samples.data() + work_.share.first, static_cast<std::size_t>(work_.share.count));
  }

  const RunSpec& run_;
  const RankWork& work_;
  const ShardCache& data_;
  std::vector<std::int64_t> positions_;
  std::optional<ExampleBatches> examples_;
  BatchesAhead ahead_;
};

}  // namespace wt
