#include "sim/program/mesh.hpp"

namespace wt {

std::string to_string(Axis axis) {
  switch (axis) {
    case Axis::replicate: return "replicate";
    case Axis::shard: return "shard";
    case Axis::expert: return "expert";
    case Axis::expert_shard: return "expert_shard";
    case Axis::world: return "world";
  }
  return "world";
}

std::int64_t Mesh::size(Axis axis) const {
  switch (axis) {
    case Axis::replicate: return replicate_;
    case Axis::shard: return shard_;
    case Axis::expert: return expert_;
    case Axis::expert_shard: return shard_ / expert_;
    case Axis::world: return world();
  }
  return 1;
}

std::int64_t Mesh::coordinate(Axis axis, std::int64_t rank) const {
  switch (axis) {
    case Axis::replicate: return rank / shard_;
    case Axis::shard: return rank % shard_;
    case Axis::expert: return rank % expert_;
    case Axis::expert_shard: return rank % shard_ / expert_;
    case Axis::world: return rank;
  }
  return 0;
}

std::int64_t Mesh::group_index(Axis axis, std::int64_t rank) const {
  switch (axis) {
    case Axis::replicate: return rank % shard_;
    case Axis::shard: return rank / shard_;
    case Axis::expert: return rank / expert_;
    case Axis::expert_shard: return rank / shard_ * expert_ + rank % expert_;
    case Axis::world: return 0;
  }
  return 0;
}

std::vector<std::int64_t> Mesh::members(Axis axis, std::int64_t group) const {
  std::vector<std::int64_t> ranks;
  for (std::int64_t rank = 0; rank < world(); ++rank)
    if (group_index(axis, rank) == group) ranks.push_back(rank);
  return ranks;
}

}  // namespace wt
