#include "sim/replay/representatives.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "sim/program/mesh.hpp"

namespace wt {
namespace {

/// Every group of every axis lies inside one block, or repeats in all the blocks it passes.
bool groups_nest(const Layout& layout, std::int64_t block) {
  const Mesh mesh(layout);
  const auto nests = [&](std::int64_t ranks) { return ranks % block == 0 || block % ranks == 0; };
  for (std::size_t a = 0; a < kAxes; ++a) {
    const Axis axis = static_cast<Axis>(a);
    if (mesh.size(axis) > 1 && !(nests(mesh.stride(axis)) && nests(mesh.stride(axis) * mesh.size(axis)))) return false;
  }
  return true;
}

/// Ranks [0, block) of a stage and every later block have the same classes and the same routing.
bool blocks_are_twins(const ProgramSet& programs, const Layout& layout, const RoutingSource& routing, std::int64_t step,
                      std::int64_t block) {
  const std::int64_t stage = layout.stage_ranks();
  for (std::int64_t rank = 0; rank < layout.world(); ++rank)
    if (programs.class_of_rank[static_cast<std::size_t>(rank)] !=
        programs.class_of_rank[static_cast<std::size_t>(rank / stage * stage + rank % stage % block)])
      return false;
  if (routing.counts(step, 0, 0, 0).empty()) return true;  // no experts
  const Program& program = programs.programs[0];
  for (int microbatch = 0; microbatch < program.microbatches; ++microbatch)
    for (int layer = 0; layer < program.layers; ++layer)
      for (std::int64_t first = 0; first < block / layout.tensor; ++first) {  // data ranks
        const auto counts = routing.counts(step, microbatch, layer, first);
        for (std::int64_t rank = first + block / layout.tensor; rank < stage / layout.tensor; rank += block / layout.tensor)
          if (routing.counts(step, microbatch, layer, rank) != counts) return false;
      }
  return true;
}

/// Nodes that are no twins of the others: those that are slow, and those behind slow uplinks.
std::set<std::int64_t> slow_nodes(const ClusterSpec& cluster, const std::vector<NodeHealth>& health) {
  std::set<std::int64_t> slow;
  for (const NodeHealth& entry : health) slow.insert(entry.node);
  for (const LeafHealth& entry : cluster.degraded_leaves)
    for (std::int64_t i = 0; i < cluster.nodes_per_leaf; ++i) slow.insert(entry.leaf * cluster.nodes_per_leaf + i);
  return slow;
}

}  // namespace

Representatives every_rank(const Layout& layout) {
  Representatives all;
  for (std::int64_t rank = 0; rank < layout.world(); ++rank) all.ranks.push_back(rank);
  return all;
}

Representatives representatives(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster,
                                const RoutingSource& routing, std::int64_t step,
                                const std::vector<NodeHealth>& health) {
  const std::int64_t node = cluster.gpus_per_node, world = layout.world(), stage = layout.stage_ranks();
  const std::int64_t closed = layout.expert * layout.tensor;
  std::int64_t block = std::max(node, closed);
  const bool whole_nodes = node % closed == 0 || closed % node == 0;
  const bool foldable =
      !cluster.shared_cores() && stage > block && stage % block == 0 && whole_nodes && groups_nest(layout, block);
  if (!foldable || !blocks_are_twins(programs, layout, routing, step, block)) return every_rank(layout);
  Representatives some;
  some.folded = true;
  if (cluster.uplinks_matter()) {
    const std::int64_t leaves = std::lcm(std::lcm(node * cluster.nodes_per_leaf, block), layout.shard * layout.tensor);
    if (leaves <= kLargestBlock && stage > leaves && stage % leaves == 0)
      block = leaves;
    else if (world <= kLargestBlock)
      return every_rank(layout);
    else
      some.uplink_shares = true;
  }
  // What a slow node slows before its replica meets the others, all of those, and one of the healthy ones.
  const std::set<std::int64_t> slow = slow_nodes(cluster, health);
  const std::int64_t span = slow.empty() ? block : std::lcm(layout.shard * layout.optimizer_shard * layout.tensor, block);
  std::set<std::int64_t> spans;
  for (const std::int64_t each : slow)
    if (each * node < world) spans.insert(each * node % stage / span);
  std::int64_t healthy = 0;
  while (spans.contains(healthy)) ++healthy;
  spans.insert(healthy);
  for (std::int64_t first = 0; first < world; first += stage)
    for (std::int64_t s : spans)
      for (std::int64_t rank = s * span; rank < std::min((s + 1) * span, stage); ++rank) some.ranks.push_back(first + rank);
  if (some.ranks.empty() || static_cast<std::int64_t>(some.ranks.size()) == world) return every_rank(layout);
  return some;
}

}  // namespace wt
