#include "trainer/data/sample_order.hpp"

#include "configs/spec/support/error.hpp"
#include "trainer/data/partition.hpp"

namespace wt {

std::vector<std::int64_t> epoch_order(std::span<const std::int64_t> shard_sizes, const ShuffleOptions& options) {
  const std::vector<std::int64_t> shuffled = shuffle_samples(shard_sizes, options);
  auto order = read_canonical_nodes(static_cast<std::int64_t>(shuffled.size()), options.num_canonical_nodes, false);
  for (auto& id : order) id = shuffled[static_cast<std::size_t>(id)];
  return order;
}

std::span<const std::int64_t> rank_samples(std::span<const std::int64_t> batch, std::int64_t rank, std::int64_t world) {
  const auto size = static_cast<std::int64_t>(batch.size());
  if (world < 1 || size % world != 0) {
    throw_error(Code::usage,
                "global batch: found {} samples for {} ranks, allowed is a multiple of the ranks; change "
                "global_train_batch_size",
                size, world);
  }
  if (rank < 0 || rank >= world) {
    throw_error(Code::usage,
                "global batch: found rank {} of {}, allowed is 0 to {}; check the launcher's RANK and WORLD_SIZE", rank,
                world, world - 1);
  }
  const std::int64_t share = size / world;
  return batch.subspan(static_cast<std::size_t>(rank * share), static_cast<std::size_t>(share));
}

}  // namespace wt
