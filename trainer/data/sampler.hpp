// Walks the epochs of a dataset in global batches and can stop and go on anywhere: five numbers, the ones Streaming
// keeps too, say where it is. The same on every rank; no communication.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trainer/data/shuffle.hpp"

namespace wt {

/// What a checkpoint stores of the sampler.
struct SamplerState {
  std::int64_t epoch = 0;
  std::int64_t sample_in_epoch = 0;  ///< samples of this epoch already handed out, over all ranks
  std::int64_t num_canonical_nodes = 1;
  std::uint64_t shuffle_seed = kDefaultShuffleSeed;
  std::int64_t initial_physical_nodes = 1;  ///< kept for Streaming's own readers; our order does not depend on it
  friend bool operator==(const SamplerState&, const SamplerState&) = default;
};

nlohmann::json to_json(const SamplerState& state);
/// Throws Error{usage} naming origin and key, on keys that are missing, unknown or no whole number in range.
SamplerState sampler_state_from_json(const nlohmann::json& document, const std::string& origin);

struct SamplerOptions {
  ShuffleAlgorithm algorithm = ShuffleAlgorithm::py1e;
  std::int64_t block_size = 0;                       ///< samples; 0 = Streaming's default
  std::int64_t num_canonical_nodes = 1;              ///< keep it through a run; a state overrides it
  std::uint64_t shuffle_seed = kDefaultShuffleSeed;  ///< a state overrides it
  std::int64_t initial_physical_nodes = 1;
};

class Sampler {
 public:
  /// shard_sizes: samples of each shard, in the order of index.json. Throws Error{usage} as shuffle_samples does.
  explicit Sampler(std::vector<std::int64_t> shard_sizes, const SamplerOptions& options = {});

  /// The next global_batch sample ids. What is left of an epoch and does not fill a batch is dropped.
  /// Throws Error{usage} when a batch is not 1..samples.
  std::vector<std::int64_t> next_batch(std::int64_t global_batch);

  /// Batches that were drawn from the beginning until `state`, which is of this dataset and batch size.
  std::int64_t batches_drawn(const SamplerState& state, std::int64_t global_batch) const {
    return state.epoch * (num_samples_ / global_batch) + state.sample_in_epoch / global_batch;
  }
  std::int64_t num_samples() const { return num_samples_; }
  const SamplerState& state() const { return state_; }
  /// Continues after the last batch before state() was taken. Throws Error{usage} for a state that this dataset cannot
  /// have, and then leaves the sampler as it was.
  void restore(const SamplerState& state);

 private:
  ShuffleOptions shuffle_options(const SamplerState& state) const;

  std::vector<std::int64_t> shard_sizes_;
  ShuffleAlgorithm algorithm_;
  std::int64_t block_size_;
  std::int64_t num_samples_ = 0;
  SamplerState state_;
  std::vector<std::int64_t> order_;  ///< of state_.epoch
};

}  // namespace wt
