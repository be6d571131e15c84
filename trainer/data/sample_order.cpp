#include "trainer/data/sample_order.hpp"

#include <algorithm>

#include "configs/base/error.hpp"

namespace wt {

namespace {

void check_rank(std::int64_t rank, std::int64_t world) {
  if (rank >= 0 && rank < world) return;
  throw_usage("global batch: found rank {} of {}, allowed is 0 to {}; check the launcher's RANK and WORLD_SIZE", rank,
              world, world - 1);
}

}  // namespace

std::span<const std::int64_t> rank_samples(std::span<const std::int64_t> batch, std::int64_t rank, std::int64_t world) {
  const auto size = static_cast<std::int64_t>(batch.size());
  if (world < 1 || size % world != 0)
    throw_usage(
        "global batch: found {} samples for {} ranks, allowed is a multiple of the ranks; change "
        "global_train_batch_size",
        size, world);
  check_rank(rank, world);
  const std::int64_t share = size / world;
  return batch.subspan(static_cast<std::size_t>(rank * share), static_cast<std::size_t>(share));
}

BatchShare share_of_batch(std::int64_t batch, std::int64_t rank, std::int64_t replicas, std::int64_t ranks_of_replica) {
  if (replicas < 1 || ranks_of_replica < 1 || batch % ranks_of_replica != 0 || batch < replicas * ranks_of_replica)
    throw_usage(
        "global batch: found {} samples for {} replicas of {} ranks, allowed is a multiple of the ranks with a sample "
        "for each; change global_train_batch_size",
        batch, replicas, ranks_of_replica);
  check_rank(rank, replicas * ranks_of_replica);
  const std::int64_t rounds = batch / ranks_of_replica, least = rounds / replicas, with_more = rounds % replicas;
  const std::int64_t replica = rank / ranks_of_replica, count = least + (replica < with_more ? 1 : 0);
  const std::int64_t before = ranks_of_replica * (replica * least + std::min(replica, with_more));
  return {before + rank % ranks_of_replica * count, count};
}

}  // namespace wt
