// Batches of finetuning examples: which of them share a sequence, and the tokens and targets of a rank's microbatch.
#pragma once
#include <optional>
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
  std::int64_t targets = 0;  ///< tokens of them that are learned
};

class ExampleBatches {
 public:
  /// `run` has a finetuning data set; it and `data`, which was opened for it, outlive this. Reads the first example.
  /// Throws as Examples::size does.
  ExampleBatches(const ShardCache& data, const DatasetSpec& spec, const RunSpec& run);

  /// What a step is made of that draws these samples: the same on every rank, which reads all of them for their sizes.
  /// Throws Error{usage} where the step has nothing to learn, and as Examples::size does.
  ExampleStep step(std::span<const std::int64_t> samples);

  /// Of each sequence the tokens at `positions`, and their targets; behind its examples there are zeros without a
  /// target, which see the last one. kNoSample alone: zeros. Throws Error{usage} on tokens outside the vocabulary.
  Microbatch load(std::span<const PackedExamples> sequences, std::span<const std::int64_t> positions) const;

  /// Samples that earlier steps have drawn and no step has taken.
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
