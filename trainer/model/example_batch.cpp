#include "trainer/model/example_batch.hpp"

#include "configs/base/error.hpp"
#include "kernels/kernels.h"
#include "trainer/pch.hpp"

namespace wt {
namespace {

/// A complete, padded sequence.
struct FilledSequence {
  std::vector<std::int64_t> tokens, targets;  ///< (S,)
  std::vector<std::int64_t> begins;           ///< begin of each example
};

}  // namespace

ExampleBatches::ExampleBatches(const ShardCache& data, const DatasetSpec& spec, const RunSpec& run)
    : run_(run),
      folder_(spec.folder().string()),
      packs_(spec.packs()),
      examples_(data, spec, run.seq),
      packer_(run.seq, [this](std::int64_t id) { return examples_.size(id).tokens; }) {
  examples_.size(0);
}

ExampleStep ExampleBatches::step(std::span<const std::int64_t> samples) {
  ExampleStep out;
  if (packs_)
    out.sequences = packer_.pack(samples, run_.global_batch);
  else
    for (const std::int64_t id : samples) out.sequences.push_back({id});
  for (const PackedExamples& sequence : out.sequences)
    for (const std::int64_t id : sequence) out.targets += examples_.size(id).targets;
  if (out.targets == 0)
    throw_usage(
        "{}: found no token to learn in the {} sequences of a step, sample {} among them, allowed is at least one; "
        "name more with target_prompts or target_responses, or leave out examples without a response",
        folder_, out.sequences.size(), out.sequences.front().front());
  return out;
}

Microbatch ExampleBatches::load(std::span<const PackedExamples> sequences,
                                std::span<const std::int64_t> positions) const {
  const auto n = static_cast<std::int64_t>(sequences.size()), own = static_cast<std::int64_t>(positions.size());
  Microbatch batch{at::empty({n * own}, at::kLong), at::empty({1, n * own}, at::kLong), {}};
  bool packed = false;
  for (std::int64_t i = 0; i < n; ++i) {
    FilledSequence filled{std::vector<std::int64_t>(static_cast<std::size_t>(run_.seq)),
                          std::vector<std::int64_t>(static_cast<std::size_t>(run_.seq), WT_IGNORED_TARGET),
                          {}};
    std::size_t at = 0;
    for (const std::int64_t id : sequences[static_cast<std::size_t>(i)]) {
      if (id == kNoSample) continue;
      const LabelledTokens example = examples_.example(id);
      filled.begins.push_back(static_cast<std::int64_t>(at));
      for (std::size_t t = 0; t < example.tokens.size(); ++t, ++at) {
        const std::int64_t token = example.tokens[t];
        if (token >= run_.model.vocab)
          throw_usage("{}: token {} in sample {}, the model's vocab_size is {}", folder_, token, id, run_.model.vocab);
        filled.tokens.at(at) = token;
        if (example.learned[t]) filled.targets.at(at - 1) = token;
      }
    }
    packed = packed || filled.begins.size() > 1;
    if (filled.begins.empty()) filled.begins.push_back(0);
    for (std::int64_t j = 0; j < own; ++j) {
      const auto t = static_cast<std::size_t>(positions[static_cast<std::size_t>(j)]);
      batch.tokens.data_ptr<std::int64_t>()[i * own + j] = filled.tokens[t];
      batch.targets.data_ptr<std::int64_t>()[i * own + j] = filled.targets[t];
    }
    batch.documents.push_back(std::move(filled.begins));
  }
  if (!packed) batch.documents.clear();  // one example per sequence: padding follows it, and is never seen
  return batch;
}

}  // namespace wt
