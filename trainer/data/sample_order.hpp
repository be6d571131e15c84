// Which part of a global batch a rank reads. The batches themselves do not depend on the ranks (epoch_batches.hpp):
// this is Streaming's elastic determinism, and it holds as long as the global batch stays constant and divisible by
// every number of ranks used, and num_canonical_nodes, seed, algorithm and block size do not change.
#pragma once
#include <cstdint>
#include <span>

namespace wt {

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
