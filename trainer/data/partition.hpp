// Streaming's elastic partition (streaming/base/partition): which sample id each rank reads when. The trainer itself
// splits whole global batches (sample_order.hpp). This reproduces Streaming's own assignment, to compare its readers
// with ours, and to move a run between the two at the end of a global batch.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace wt {

struct PartitionShape {
  std::int64_t num_samples = 0;
  std::int64_t canonical_nodes = 1;  ///< fixed for a run; one of canonical and physical must divide the other
  std::int64_t physical_nodes = 1;
  std::int64_t ranks_per_node = 1;
  std::int64_t workers_per_rank = 1;
  std::int64_t batch_size = 1;  ///< samples of one rank's batch
};

/// Ids in row-major order (physical node, rank, worker, batch, sample); -1 pads the last batches.
struct Partition {
  PartitionShape shape;
  std::int64_t batches_per_worker = 0;
  std::vector<std::int64_t> ids;

  std::int64_t at(std::int64_t node, std::int64_t rank, std::int64_t worker, std::int64_t batch,
                  std::int64_t sample) const;
};

/// "orig". drop_first = samples already seen (rounded down to a multiple of the physical nodes).
/// Throws Error{usage} when the node counts do not divide, counts are not positive, or drop_first >= num_samples.
Partition partition_orig(const PartitionShape& shape, std::int64_t drop_first = 0);

/// "relaxed": like orig where the node counts divide. Otherwise the order of a run that began on initial_physical_nodes
/// is split again in whole global batches, which must also divide by the initial ranks.
Partition partition_relaxed(const PartitionShape& shape, std::int64_t drop_first = 0,
                            std::optional<std::int64_t> initial_physical_nodes = std::nullopt);

}  // namespace wt
