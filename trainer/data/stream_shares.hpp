// The number of samples drawn from each stream in an epoch (streaming/base/stream.py, apply_weights); constant over
// epochs.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "configs/files/dataset.hpp"

namespace wt {

struct StreamShare {
  double proportion = 0;  ///< of the epoch's samples; as given (normalised) where streams have proportions
  double repeat = 0;      ///< how often each of its samples is read, on average
  std::int64_t choose = 0;
};

struct EpochShares {
  std::int64_t epoch_size = 0;
  std::vector<StreamShare> streams;
};

/// `samples`: of each stream. `proportions` replace the streams' own, one per stream; empty: their own. Samples left
/// over by rounding down go to streams chosen by default_rng(shuffle_seed). Throws Error{usage}: a stream without
/// samples, an epoch without samples.
EpochShares epoch_shares(const DatasetSpec& dataset, std::span<const std::int64_t> samples,
                         std::span<const double> proportions = {});

}  // namespace wt
