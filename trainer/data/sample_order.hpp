// The order in which the trainer reads an epoch. Step s with a global batch of B samples reads order[s*B, (s+1)*B),
// whatever the world size: this is Streaming's elastic determinism, and it holds as long as the global batch stays
// constant and divisible by every number of ranks used, and num_canonical_nodes, seed, algorithm and block size do not
// change.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/shuffle.hpp"

namespace wt {

/// Shuffled sample ids, canonical nodes read in turn; each sample of 0..sum(shard_sizes)-1 exactly once. Equal to what
/// Streaming reads, except that Streaming repeats a sample of each short canonical node in the last num_canonical_nodes
/// places of an epoch, and we leave the repeats out. Throws Error{usage} as shuffle_samples does.
/// Costs about 16 bytes a sample while it runs, 40 with py1e.
std::vector<std::int64_t> epoch_order(std::span<const std::int64_t> shard_sizes, const ShuffleOptions& options);

/// What rank `rank` of `world` reads of a global batch: the contiguous part [rank*B/world, (rank+1)*B/world).
/// Throws Error{usage} when the world does not divide the batch or has no such rank.
std::span<const std::int64_t> rank_samples(std::span<const std::int64_t> batch, std::int64_t rank, std::int64_t world);

/// The part [first, first + count) of a global batch that a rank reads where the batch is kept although replicas are
/// missing: of equally many ranks in each replica all have equally many samples, and the first replicas one a rank more
/// where they do not divide the batch. Parts follow one another in the order of the ranks; where all replicas have
/// equally many they are rank_samples'. Throws Error{usage} when the ranks of a replica do not divide the batch, when
/// there are fewer samples than ranks, and when there is no such rank.
struct BatchShare {
  std::int64_t first = 0, count = 0;
};
BatchShare share_of_batch(std::int64_t batch, std::int64_t rank, std::int64_t replicas, std::int64_t ranks_of_replica);

}  // namespace wt
