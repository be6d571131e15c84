// The global batches of one epoch (streaming/base/batching). They are those that Streaming deals to one node with one
// rank and one worker; other worlds get the same batches in the same order, only dealt to more ranks. What differs
// there is outside of them: the repeats with which Streaming fills a last batch for many ranks, and device_per_stream,
// whose batches depend on nodes and ranks. Batches that are not full are dropped (drop_last).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/stream_shares.hpp"

namespace wt {

/// Ranks that read different samples; only device_per_stream depends on them.
struct BatchWorld {
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;
  friend bool operator==(const BatchWorld&, const BatchWorld&) = default;
};

/// What all epochs of a mix have in common.
struct MixedStreams {
  const DatasetSpec* dataset = nullptr;
  std::span<const std::vector<std::int64_t>> shards;  ///< samples of each shard of each stream
  EpochShares shares;
  std::int64_t num_canonical_nodes = 1;  ///< a state's, in place of the data set's
  std::uint64_t shuffle_seed = kDefaultShuffleSeed;
};

/// Samples of each stream in a stratified batch: portions rounded down, and one more for the streams that lose most; of
/// equal ones the later, as NumPy sorts up to 16 numbers (beyond, its order of equal ones depends on the processor).
/// Throws Error{usage} for a stream without a sample in it.
std::vector<std::int64_t> stratified_portions(const MixedStreams& mix, std::int64_t global_batch);

/// Whole batches in an epoch; the same in all. Throws Error{usage} for a stream, or an epoch, that fills no batch.
std::int64_t batches_of_epoch(const MixedStreams& mix, std::int64_t global_batch, const BatchWorld& world);

class EpochBatches {
 public:
  virtual ~EpochBatches() = default;
  /// The next `global_batch` samples; there are so many.
  virtual std::vector<std::int64_t> next() = 0;
};

/// From the sample on that follows the first `sample_in_epoch` of the epoch; but for random batching from the last
/// whole batch before it. Costs what read_nodes and samples_of_shards cost. Throws Error{usage} as they do.
std::unique_ptr<EpochBatches> epoch_batches(const MixedStreams& mix, std::int64_t epoch, std::int64_t sample_in_epoch,
                                            std::int64_t global_batch, const BatchWorld& world);

}  // namespace wt
