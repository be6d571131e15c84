// The part of a global batch that a rank reads. The batches themselves do not depend on the ranks (epoch_batches.hpp).
// This is Streaming's elastic determinism. It holds as long as the global batch stays constant and divisible by every
// number of ranks used, and num_canonical_nodes, seed, algorithm and block size do not change.
#pragma once
#include <cstdint>
#include <span>

namespace wt {

/// The contiguous part [rank*B/world, (rank+1)*B/world) of a global batch. Throws Error{usage} when the world does not
/// divide the batch or has no such rank.
std::span<const std::int64_t> rank_samples(std::span<const std::int64_t> batch, std::int64_t rank, std::int64_t world);

/// The part [first, first + count) of a global batch that a rank reads, if the batch stays the same although replicas
/// are missing. All ranks of a replica read equally many samples; if the replicas do not divide the batch, each rank of
/// the first replicas reads one more. Parts are in the order of the ranks, and equal rank_samples where the replicas
/// divide the batch. Throws Error{usage} when the ranks of a replica do not divide the batch, when there are fewer
/// samples than ranks, and when there is no such rank.
struct BatchShare {
  std::int64_t first = 0, count = 0;
};
BatchShare share_of_batch(std::int64_t batch, std::int64_t rank, std::int64_t replicas, std::int64_t ranks_of_replica);

}  // namespace wt
