// Mesh algebra: which ranks form a group on which axis. rank = ((p * replicate + r) * shard + s) * tensor + t, and
// s = es * expert + e = d * context + c. `expert` and `context` are two innermost views of the same shard ranks, so
// that their groups are neighbours (inside a node where they fit); the ranks of a tensor group are closer still. This
// is Megatron's order tp-cp-ep-dp-pp. With Layout::whole_experts, experts are distributed over the shard x tensor ranks
// instead: s * tensor + t = es * expert + e. Replicas are divided likewise: r = copy * optimizer_shard + o; `state` is
// the (o, shard, t) block.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/layout.hpp"

namespace wt {

enum class Axis {
  replicate,
  shard,
  expert,
  expert_shard,
  context,
  optimizer_shard,      ///< replicas that each keep a part of one shard's optimizer state
  optimizer_replicate,  ///< replicas that keep the same part
  state,                ///< ranks that together hold one optimizer state of a stage: shard x optimizer_shard x tensor
  tensor,               ///< ranks that share every product of a layer
  pipeline,             ///< one rank of each stage
  world
};
constexpr std::size_t kAxes = static_cast<std::size_t>(Axis::world) + 1;
std::string to_string(Axis axis);

class Mesh {
 public:
  Mesh(std::int64_t replicate, std::int64_t shard, std::int64_t expert, std::int64_t context = 1,
       std::int64_t optimizer_shard = 1, std::int64_t tensor = 1, std::int64_t pipeline = 1, bool whole_experts = false)
      : replicate_(replicate),
        shard_(shard),
        expert_(expert),
        context_(context),
        optimizer_shard_(optimizer_shard),
        tensor_(tensor),
        pipeline_(pipeline),
        whole_experts_(whole_experts) {}
  explicit Mesh(const Layout& layout)
      : Mesh(layout.replicate, layout.shard, layout.expert, layout.context, layout.optimizer_shard, layout.tensor,
             layout.pipeline, layout.whole_experts) {}

  std::int64_t world() const { return pipeline_ * replicate_ * shard_ * tensor_; }
  std::int64_t size(Axis axis) const;
  /// Distance in ranks between neighbouring members of a group.
  std::int64_t stride(Axis axis) const;
  /// Coordinate of a rank along an axis, 0..size(axis)-1.
  std::int64_t coordinate(Axis axis, std::int64_t rank) const;
  /// Index of the rank's group among the world/size(axis) groups of this axis.
  std::int64_t group_index(Axis axis, std::int64_t rank) const;
  /// The member of the rank's group `steps` coordinates away, around the ends.
  std::int64_t neighbour(Axis axis, std::int64_t rank, std::int64_t steps) const;
  /// Ranks of one group, ascending; the position in the list is the coordinate.
  std::vector<std::int64_t> members(Axis axis, std::int64_t group) const;

 private:
  std::int64_t replicate_, shard_, expert_, context_, optimizer_shard_, tensor_, pipeline_;
  bool whole_experts_;
};

}  // namespace wt
