// Walks through the epochs of a data set in global batches, and can stop and resume anywhere. Its state is five
// numbers, as in Streaming; a curriculum adds the mixes used. It is the same on every rank and needs no communication.
// Batches do not depend on the number of ranks (exceptions: epoch_batches.hpp), so that a run resumes exactly on other
// ranks. Ids number the samples of all streams in order, and within a stream of all shards in its index.json.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/data_identity.hpp"
#include "trainer/data/epoch_batches.hpp"

namespace wt {

/// A mix of streams that a curriculum has used or is using.
struct UsedMix {
  std::int64_t at = 0;     ///< batches drawn before its first one
  std::int64_t epoch = 0;  ///< its first epoch
  std::vector<double> proportions;
  friend bool operator==(const UsedMix&, const UsedMix&) = default;
};

/// What a checkpoint stores of the sampler.
struct SamplerState {
  std::int64_t epoch = 0;
  std::int64_t sample_in_epoch = 0;  ///< samples of this epoch already read, over all ranks
  std::int64_t num_canonical_nodes = 1;
  std::uint64_t shuffle_seed = kDefaultShuffleSeed;
  std::int64_t initial_physical_nodes = 1;  ///< kept for Streaming's own readers; our order does not depend on it
  std::vector<UsedMix> mixes = {};          ///< with a curriculum: the mixes, the data set's own first; otherwise empty
  BatchWorld world = {};                    ///< the world that batches of device_per_stream were, and are, made for
  /// With packing: samples that were drawn and wait for a step, by sequence (example_packer.hpp).
  std::vector<std::vector<std::int64_t>> waiting = {};
  DataIdentity data = {};  ///< what the samples are of; empty: not known, as older checkpoints have it
  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

nlohmann::json to_json(const SamplerState& state);
/// Throws Error{usage} with origin and key, for keys that are missing, unknown or not a whole number in range.
SamplerState sampler_state_from_json(const nlohmann::json& document, const std::string& origin);

class Sampler {
 public:
  /// shards: samples of each shard of each stream, in the order of index.json. `world`: the ranks that read different
  /// samples. `identity`: of the same data. Throws Error{usage}: streams without samples, fewer samples than canonical
  /// nodes.
  Sampler(DatasetSpec dataset, std::vector<std::vector<std::int64_t>> shards, const BatchWorld& world = {},
          DataIdentity identity = {});

  /// The next global_batch sample ids. The rest of an epoch that does not fill a batch is dropped; so is the rest of an
  /// epoch that a curriculum ends. Costs seconds at the begin of an epoch of 1e9 samples. Throws Error{usage} when the
  /// streams do not fill a batch, or the curriculum changed a past batch.
  std::vector<std::int64_t> next_batch(std::int64_t global_batch);

  /// Batches drawn from the beginning until `state`, which must be of this data set and batch size.
  std::int64_t batches_drawn(const SamplerState& state, std::int64_t global_batch) const;
  /// Samples of all streams; ids are smaller.
  std::int64_t num_samples() const { return num_samples_; }
  /// Samples that an epoch draws in the mix of the next batch.
  std::int64_t epoch_size() const { return mix(state_).shares.epoch_size; }
  const SamplerState& state() const { return state_; }
  /// Continues after the last batch before state() was taken. Throws Error{usage} for a state that this data set cannot
  /// have, or that was read from other data, and then leaves the sampler as it was.
  void restore(const SamplerState& state);

 private:
  MixedStreams mix(const SamplerState& state) const;
  void check(const SamplerState& state) const;
  void check_waiting(const SamplerState& state) const;

  DatasetSpec dataset_;
  DataIdentity identity_;
  std::vector<std::vector<std::int64_t>> shards_;
  std::vector<std::int64_t> samples_;  ///< of each stream
  std::int64_t num_samples_ = 0;
  SamplerState state_;
  std::unique_ptr<EpochBatches> batches_;  ///< the batches after state_, created on demand
  std::int64_t batch_of_them_ = 0;
};

}  // namespace wt
