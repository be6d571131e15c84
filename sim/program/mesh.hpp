// Mesh algebra: which ranks form a group on which axis. rank = r * shard + es * expert + e, with `expert` innermost, so
// that expert groups are neighbours (inside a node where they fit).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/spec/layout.hpp"

namespace wt {

enum class Axis { replicate, shard, expert, expert_shard, world };
std::string to_string(Axis axis);

class Mesh {
 public:
  Mesh(std::int64_t replicate, std::int64_t shard, std::int64_t expert)
      : replicate_(replicate), shard_(shard), expert_(expert) {}
  explicit Mesh(const Layout& layout) : Mesh(layout.replicate, layout.shard, layout.expert) {}

  std::int64_t world() const { return replicate_ * shard_; }
  std::int64_t size(Axis axis) const;
  /// Coordinate of a rank along an axis, 0..size(axis)-1.
  std::int64_t coordinate(Axis axis, std::int64_t rank) const;
  /// Which of the world/size(axis) groups of this axis the rank belongs to.
  std::int64_t group_index(Axis axis, std::int64_t rank) const;
  /// Ranks of one group, ascending; the position in the list is the coordinate.
  std::vector<std::int64_t> members(Axis axis, std::int64_t group) const;

 private:
  std::int64_t replicate_, shard_, expert_;
};

}  // namespace wt
