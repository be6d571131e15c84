#include "sim/program/mesh.hpp"

namespace wt {

std::string to_string(Axis axis) {
  static const char* names[] = {"replicate",           "shard", "expert", "expert_shard", "context", "optimizer_shard",
                                "optimizer_replicate", "state", "tensor", "pipeline",     "world"};
  return names[static_cast<int>(axis)];
}

std::int64_t Mesh::size(Axis axis) const {
  switch (axis) {
    case Axis::replicate:
      return replicate_;
    case Axis::shard:
      return shard_;
    case Axis::expert:
      return expert_;
    case Axis::expert_shard:
      return shard_ * (whole_experts_ ? tensor_ : 1) / expert_;
    case Axis::context:
      return context_;
    case Axis::optimizer_shard:
      return optimizer_shard_;
    case Axis::optimizer_replicate:
      return replicate_ / optimizer_shard_;
    case Axis::state:
      return shard_ * optimizer_shard_ * tensor_;
    case Axis::tensor:
      return tensor_;
    case Axis::pipeline:
      return pipeline_;
    case Axis::world:
      return world();
  }
  return 1;
}

std::int64_t Mesh::stride(Axis axis) const {
  switch (axis) {
    case Axis::replicate:
    case Axis::optimizer_shard:
      return shard_ * tensor_;
    case Axis::optimizer_replicate:
      return shard_ * optimizer_shard_ * tensor_;
    case Axis::expert_shard:
      return expert_ * (whole_experts_ ? 1 : tensor_);
    case Axis::expert:
      return whole_experts_ ? 1 : tensor_;
    case Axis::pipeline:
      return replicate_ * shard_ * tensor_;
    case Axis::state:
    case Axis::tensor:
    case Axis::world:
      return 1;
    default:
      return tensor_;
  }
}

// A group is `size` ranks that are `stride` apart: rank = (block * size + coordinate) * stride + offset.
std::int64_t Mesh::coordinate(Axis axis, std::int64_t rank) const { return rank / stride(axis) % size(axis); }

std::int64_t Mesh::group_index(Axis axis, std::int64_t rank) const {
  return rank / (stride(axis) * size(axis)) * stride(axis) + rank % stride(axis);
}

std::int64_t Mesh::neighbour(Axis axis, std::int64_t rank, std::int64_t steps) const {
  const std::int64_t n = size(axis), own = coordinate(axis, rank), other = ((own + steps) % n + n) % n;
  return rank + (other - own) * stride(axis);
}

std::vector<std::int64_t> Mesh::members(Axis axis, std::int64_t group) const {
  const std::int64_t n = size(axis), step = stride(axis);
  const std::int64_t first = group / step * step * n + group % step;
  std::vector<std::int64_t> ranks;
  for (std::int64_t i = 0; i < n; ++i) ranks.push_back(first + i * step);
  return ranks;
}

}  // namespace wt
