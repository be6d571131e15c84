// The samples of an epoch before shuffling, as a list of units: a shard's samples, or a random draw of them
// (streaming/base/dataset.py, resample_streams). Holding units instead of ids limits memory: an epoch of 2e9 samples in
// 500,000 shards needs 40 MB.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/numpy_random.hpp"

namespace wt {

/// What the units need to know of a stream.
struct UnitStream {
  std::int64_t first_id = 0;                  ///< of its first sample; ids continue over all streams
  std::span<const std::int64_t> shard_sizes;  ///< samples
  std::int64_t choose = 0;                    ///< samples drawn from it in the epoch
};

struct UnitOptions {
  SamplingMethod method = SamplingMethod::balanced;
  std::int64_t granularity = 1;
  std::uint64_t seed = kDefaultShuffleSeed;
  std::int64_t epoch = 0;
  bool shuffle = true;  ///< false: partial draws take the same samples of a shard in every epoch
};

class EpochUnits {
 public:
  /// The units of several streams in sequence. Throws Error{usage} as samples_of_shards does.
  EpochUnits(std::span<const UnitStream> streams, const UnitOptions& options);
  /// Each shard once, completely.
  explicit EpochUnits(std::span<const std::int64_t> shard_sizes);

  std::size_t units() const { return units_.size(); }
  std::int64_t samples() const { return samples_; }
  std::int64_t samples_of(std::size_t unit) const { return units_[unit].count; }
  /// Ids of the unit in ascending order.
  void append_ids(std::size_t unit, std::vector<std::int64_t>& ids) const;

 private:
  struct SampleUnit {
    std::int64_t first_id = 0;
    std::int64_t count = 0;
    std::int64_t shard_samples = 0;
    std::int64_t draw = -1;  ///< index into draws_; -1: all samples of the shard
  };
  std::vector<SampleUnit> units_;
  std::vector<NumpyRandom> draws_;  ///< state before the draw of a unit
  std::int64_t samples_ = 0;
};

}  // namespace wt
