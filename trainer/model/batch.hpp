// The tokens of a rank's microbatch: from the data set, or drawn where a rehearsal has none.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "configs/spec/run.hpp"
#include "trainer/data/mds_reader.hpp"

namespace wt {

/// Tokens of one microbatch, int64.
struct Microbatch {
  at::Tensor tokens;   ///< (T,)
  at::Tensor targets;  ///< (1 + modules of multi-token prediction, T): row k has the token k + 1 places on,
                       ///< WT_IGNORED_TARGET where the sequence of max_seq_len + 1 tokens is over
};

/// In place of a sample: a sequence of zeros without a target.
inline constexpr std::int64_t kNoSample = -1;

/// Of each sample the tokens at `positions`, and those behind them. Throws Error{usage} on samples that are too short
/// and tokens outside the vocabulary.
Microbatch load_microbatch(const MdsReader& data, const RunSpec& run, std::span<const std::int64_t> samples,
                           std::span<const std::int64_t> positions);

/// The part of a rank's samples that microbatch m is made of.
std::span<const std::int64_t> microbatch_samples(const RunSpec& run, std::span<const std::int64_t> samples,
                                                 int microbatch);

/// Evenly drawn tokens: the same for the same run, step and microbatch.
Microbatch random_microbatch(const RunSpec& run, std::int64_t step, int microbatch);

}  // namespace wt
