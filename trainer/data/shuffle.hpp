// The shuffles of Mosaic Streaming (streaming/base/shuffle): which sample stands at which place of an epoch.
// Shards are dealt to canonical nodes once for the whole run (seed); what happens inside a canonical node is drawn anew
// each epoch (seed + epoch). Samples never leave their canonical node, except with `naive`.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wt {

enum class ShuffleAlgorithm {
  naive,  ///< one permutation of everything; needs every shard everywhere
  py1s,   ///< shards, then samples inside each shard part
  py2s,   ///< as py1s, but samples of a shard are also shuffled before shards are cut at canonical nodes
  py1br,  ///< samples inside blocks of random size and start
  py1e,   ///< each sample moves at random inside a block around its shard part (the default)
};

std::string to_string(ShuffleAlgorithm algorithm);
/// Throws Error{usage} on any other word.
ShuffleAlgorithm shuffle_algorithm_from_string(const std::string& word);

inline constexpr std::uint64_t kDefaultShuffleSeed = 9176;

struct ShuffleOptions {
  ShuffleAlgorithm algorithm = ShuffleAlgorithm::py1e;
  std::int64_t num_canonical_nodes = 1;
  std::uint64_t seed = kDefaultShuffleSeed;
  std::int64_t epoch = 0;
  std::int64_t block_size = 0;  ///< samples; 0 = max(4,000,000 / num_canonical_nodes, 2^18)
};

/// block_size with its default put in.
std::int64_t effective_block_size(const ShuffleOptions& options);

/// A permutation of 0..sum(shard_sizes)-1. Where py1e ties two positions exactly (NumPy's sort is then free), the lower
/// index comes first. Throws Error{usage} on negative sizes or epochs, block_size 1, and on fewer samples than
/// canonical nodes.
std::vector<std::int64_t> shuffle_samples(std::span<const std::int64_t> shard_sizes, const ShuffleOptions& options);

}  // namespace wt
