// The tokens of a rank's microbatch: from the data set, or drawn where a rehearsal has none.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "configs/files/run.hpp"
#include "trainer/data/token_samples.hpp"
#include "trainer/model/document_attention.hpp"

namespace wt {

/// Tokens of one microbatch, int64.
struct Microbatch {
  at::Tensor tokens;    ///< (T,)
  at::Tensor targets;   ///< (1 + modules of multi-token prediction, T): row k has the token k + 1 places on,
                        ///< WT_IGNORED_TARGET where the sequence is over: after max_seq_len + 1 tokens, or after
                        ///< max_seq_len if run.last_target_missing
  Documents documents;  ///< of packed examples (example_batch.hpp), else empty
};

/// Tokens of it whose next one is a target.
std::int64_t targets_in(const Microbatch& batch);

/// In place of a sample: a sequence of zeros without a target.
inline constexpr std::int64_t kNoSample = -1;

/// Of each sample the tokens at `positions`, and those behind them. Throws Error{usage} on samples that are too short
/// and tokens outside the vocabulary.
Microbatch load_microbatch(const TokenSamples& data, const RunSpec& run, std::span<const std::int64_t> samples,
                           std::span<const std::int64_t> positions);

/// What RunSpec::last_target_missing is for this data set: whether its first sample has max_seq_len tokens. All samples
/// are then read so, longer ones too. Throws Error{usage} if it has fewer.
bool is_last_target_missing(const TokenSamples& data, const RunSpec& run);

/// The part of a rank's samples, or of its sequences of several, that microbatch m is made of.
template <typename Sample>
std::span<const Sample> microbatch_samples(const RunSpec& run, std::span<const Sample> samples, int microbatch) {
  return samples.subspan(static_cast<std::size_t>(microbatch * run.layout.microbatch),
                         static_cast<std::size_t>(run.sequences().of(microbatch)));
}

/// Evenly drawn tokens: the same for the same run, step and microbatch.
Microbatch random_microbatch(const RunSpec& run, std::int64_t step, int microbatch);

}  // namespace wt
