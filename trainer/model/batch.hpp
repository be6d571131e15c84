// The tokens of a rank's microbatch: from the data set, or random ones in a rehearsal without data.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "configs/files/run.hpp"
#include "trainer/data/token_samples.hpp"
#include "trainer/model/document_attention.hpp"
#include "trainer/model/rank_work.hpp"

namespace wt {

/// Tokens of one microbatch, int64.
struct Microbatch {
  at::Tensor tokens;    ///< (T,)
  at::Tensor targets;   ///< (1 + modules of multi-token prediction, T): row k has the token k + 1 places ahead,
                        ///< WT_IGNORED_TARGET at the end of the sequence: after max_seq_len + 1 tokens, or after
                        ///< max_seq_len if the data has no target for the last one
  Documents documents;  ///< of packed examples (example_batch.hpp), else empty
};

/// Number of tokens with a target.
std::int64_t targets_in(const Microbatch& batch);

/// A sample id that stands for a sequence of zeros without targets.
inline constexpr std::int64_t kNoSample = -1;

/// The tokens of each sample at `positions`, and their targets; `last_target_missing`: of this data set. Throws
/// Error{usage} for samples that are too short and tokens outside the vocabulary.
Microbatch load_microbatch(const TokenSamples& data, const RunSpec& run, std::span<const std::int64_t> samples,
                           std::span<const std::int64_t> positions, bool last_target_missing);

/// RankWork::last_target_missing for this data set: whether its first sample has max_seq_len tokens. Longer samples are
/// then cut to that length. Throws Error{usage} if it has fewer.
bool is_last_target_missing(const TokenSamples& data, const RunSpec& run);

/// The samples, or packed sequences, of microbatch m among those of a rank.
template <typename Sample>
std::span<const Sample> microbatch_samples(const RankWork& work, std::span<const Sample> samples, int microbatch) {
  return samples.subspan(static_cast<std::size_t>(microbatch * work.sequences.each),
                         static_cast<std::size_t>(work.sequences.of(microbatch)));
}

/// Uniformly random tokens, deterministic by run, step and microbatch.
Microbatch random_microbatch(const RunSpec& run, const RankWork& work, std::int64_t step, int microbatch);

}  // namespace wt
