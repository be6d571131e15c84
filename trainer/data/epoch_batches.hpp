// The global batches of one epoch (streaming/base/batching). They equal Streaming's for one node with one rank and one
// worker; other worlds split the same batches, in the same order, over more ranks. Two differences from Streaming: it
// repeats samples to fill a last batch for many ranks, while incomplete batches are dropped here (drop_last); and
// batches of device_per_stream depend on nodes and ranks.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/stream_shares.hpp"

namespace wt {

/// The ranks that read different samples; only device_per_stream depends on them.
struct BatchWorld {
  std::int64_t nodes = 1;
  std::int64_t ranks_per_node = 1;
  friend bool operator==(const BatchWorld&, const BatchWorld&) = default;
};

/// Inputs that all epochs of a mix share.
struct MixedStreams {
  const DatasetSpec* dataset = nullptr;
  std::span<const std::vector<std::int64_t>> shards;  ///< samples of each shard of each stream
  EpochShares shares;
  std::int64_t num_canonical_nodes = 1;  ///< from the sampler's state, instead of the data set's
  std::uint64_t shuffle_seed = kDefaultShuffleSeed;
};

/// Samples of each stream in a stratified batch: proportional numbers rounded down, plus one for the streams with the
/// largest remainders. Equal remainders: the later stream, as NumPy sorts up to 16 numbers (for more, its order depends
/// on the processor). Throws Error{usage} for a stream without a sample in the batch.
std::vector<std::int64_t> stratified_portions(const MixedStreams& mix, std::int64_t global_batch);

/// Complete batches in an epoch, the same in all epochs. Throws Error{usage} for a stream, or an epoch, that fills no
/// batch.
std::int64_t batches_of_epoch(const MixedStreams& mix, std::int64_t global_batch, const BatchWorld& world);

class EpochBatches {
 public:
  virtual ~EpochBatches() = default;
  /// The next `global_batch` samples; must not be called at the end.
  virtual std::vector<std::int64_t> next() = 0;
};

/// Starts after the first `sample_in_epoch` samples of the epoch; unless batching is random, at the last complete batch
/// before that. Costs as much as read_nodes and samples_of_shards, and throws Error{usage} like them.
std::unique_ptr<EpochBatches> epoch_batches(const MixedStreams& mix, std::int64_t epoch, std::int64_t sample_in_epoch,
                                            std::int64_t global_batch, const BatchWorld& world);

}  // namespace wt
