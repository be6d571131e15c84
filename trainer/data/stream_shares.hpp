// How many samples of each stream an epoch draws (streaming/base/stream.py, apply_weights). The same every epoch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "configs/files/dataset.hpp"

namespace wt {

struct StreamShare {
  double proportion = 0;  ///< of the epoch's samples; as given (their sum made 1) where streams have proportions
  double repeat = 0;      ///< times that each of its samples is read on average
  std::int64_t choose = 0;
};

struct EpochShares {
  std::int64_t epoch_size = 0;
  std::vector<StreamShare> streams;
};

/// `samples`: of each stream. `proportions`: in place of the streams' own, one a stream; empty: their own.
/// The samples that rounding down leaves over go to streams that default_rng(shuffle_seed) chooses.
/// Throws Error{usage}: a stream without samples, an epoch without samples.
EpochShares epoch_shares(const DatasetSpec& dataset, std::span<const std::int64_t> samples,
                         std::span<const double> proportions = {});

}  // namespace wt
