// Batches of finetuning examples: which ones share a sequence, and the tokens and targets of a rank's microbatch.
#pragma once
#include <span>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/data/example_packer.hpp"
#include "trainer/data/examples.hpp"
#include "trainer/model/batch.hpp"

namespace wt {

/// The sequences of one step over all ranks.
struct ExampleStep {
  std::vector<PackedExamples> sequences;
  std::int64_t targets = 0;  ///< tokens in the loss
};

class ExampleBatches {
 public:
  /// `run` must have a finetuning data set; it and `data`, which was opened for it, must outlive this. Reads the first
  /// example. Throws as Examples::size does.
  ExampleBatches(const ShardCache& data, const DatasetSpec& spec, const RunSpec& run);

  /// Packs these samples into a step, identically on every rank; all ranks read all samples for their sizes. Throws
  /// Error{usage} where the step has no tokens in the loss, and as Examples::size does.
  ExampleStep step(std::span<const std::int64_t> samples);

  /// The tokens of each sequence at `positions`, and their targets. After its examples a sequence has zeros without
  /// targets, which belong to the last example. kNoSample alone: only zeros. Throws Error{usage} for tokens outside the
  /// vocabulary.
  Microbatch load(std::span<const PackedExamples> sequences, std::span<const std::int64_t> positions) const;

  /// Samples that were drawn by earlier steps and are not used yet.
  std::vector<PackedExamples> waiting() const { return packer_.waiting(); }
  void restore(const std::vector<PackedExamples>& waiting) { packer_.restore(waiting); }

 private:
  const RunSpec& run_;
  std::string folder_;
  bool packs_;
  Examples examples_;
  ExamplePacker packer_;
};

}  // namespace wt
