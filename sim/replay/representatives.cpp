#include "sim/replay/representatives.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/program/mesh.hpp"
#include "sim/replay/traffic.hpp"

namespace wt {
namespace {

/// Whether every group of every axis lies inside one block, or repeats in all blocks that it spans.
bool groups_nest(const Layout& layout, std::int64_t block) {
  const Mesh mesh(layout);
  const auto nests = [&](std::int64_t ranks) { return ranks % block == 0 || block % ranks == 0; };
  for (std::size_t a = 0; a < kAxes; ++a) {
    const Axis axis = static_cast<Axis>(a);
    if (mesh.size(axis) > 1 && !(nests(mesh.stride(axis)) && nests(mesh.stride(axis) * mesh.size(axis)))) return false;
  }
  return true;
}

/// Whether ranks [0, block) of a stage have the same classes and routing as every later block.
bool blocks_are_twins(const ProgramSet& programs, const Layout& layout, const RoutingSource& routing, std::int64_t step,
                      std::int64_t block) {
  const std::int64_t stage = layout.stage_ranks();
  for (std::int64_t rank = 0; rank < layout.world(); ++rank)
    if (programs.class_of_rank[static_cast<std::size_t>(rank)] !=
        programs.class_of_rank[static_cast<std::size_t>(rank / stage * stage + rank % stage % block)])
      return false;
  if (routing.same_on_every_rank() || routing.counts(step, 0, 0, 0).empty()) return true;  // the latter: no experts
  const Program& program = programs.programs[0];
  for (int microbatch = 0; microbatch < program.microbatches; ++microbatch)
    for (int layer = 0; layer < program.layers; ++layer)
      for (std::int64_t first = 0; first < block / layout.tensor; ++first) {  // data ranks
        const auto counts = routing.counts(step, microbatch, layer, first);
        for (std::int64_t rank = first + block / layout.tensor; rank < stage / layout.tensor;
             rank += block / layout.tensor)
          if (routing.counts(step, microbatch, layer, rank) != counts) return false;
      }
  return true;
}

/// Whether all ranks of a stage run one program, receive equally many rows, and are placed equally on healthy nodes of
/// one kind.
bool stages_are_twins(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster,
                      const RoutingSource& routing, std::int64_t step, const std::vector<NodeHealth>& health) {
  if (cluster.shared_cores() || cluster.uplinks_matter() || !cluster.others.empty() || !health.empty()) return false;
  for (std::size_t a = 0; a < kAxes; ++a)
    if (!group_shape(cluster, layout, static_cast<Axis>(a))) return false;
  const std::int64_t stage = layout.stage_ranks();
  for (std::int64_t rank = 0; rank < layout.world(); ++rank)
    if (programs.class_of_rank[static_cast<std::size_t>(rank)] !=
        programs.class_of_rank[static_cast<std::size_t>(rank / stage * stage)])
      return false;
  if (!routing.same_in_every_microbatch()) return routing.counts(step, 0, 0, 0).empty();
  const auto uniform = [](const std::vector<double>& counts) {
    return std::ranges::all_of(counts, [&](double count) { return count == counts.front(); });
  };
  const Program& program = programs.programs[0];
  const auto first = routing.counts(step, 0, 0, 0);
  const std::int64_t sources = routing.same_on_every_rank() ? 1 : stage / layout.tensor;
  for (int layer = 0; layer < program.layers; ++layer)
    for (std::int64_t source = 0; source < sources; ++source)
      if (const auto counts = routing.counts(step, 0, layer, source); !uniform(counts) || counts != first) return false;
  return true;
}

/// The properties that distinguish nodes: kind, compute, NIC and NVSwitch health. Behind slow uplinks also the node
/// itself (else -1), because traffic of such nodes differs from node to node.
using Colour = std::tuple<std::size_t, double, double, double, std::int64_t>;

std::vector<Colour> colours(const ClusterSpec& cluster, const std::vector<NodeHealth>& health, std::int64_t nodes) {
  std::vector<Colour> all;
  for (std::int64_t node = 0; node < nodes; ++node)
    all.emplace_back(cluster.kind_of(node), 1, 1, 1, cluster.uplink_of(cluster.leaf_of(node)) < 1 ? node : -1);
  for (const NodeHealth& entry : health) {
    if (entry.node >= nodes) continue;
    auto& [kind, compute, nic, nvswitch, alone] = all[static_cast<std::size_t>(entry.node)];
    compute *= entry.compute, nic *= entry.nic, nvswitch *= entry.nvswitch;
  }
  return all;
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
  if (stage > 1 && stages_are_twins(programs, layout, cluster, routing, step, health)) {
    Representatives one{.folded = true, .uplink_shares = false, .one_a_stage = true, .ranks = {}};
    for (std::int64_t first = 0; first < world; first += stage) one.ranks.push_back(first);
    return one;
  }
  const std::int64_t closed =
      layout.whole_experts ? std::lcm(layout.expert, layout.tensor) : layout.expert * layout.tensor;
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
  // Different nodes delay a replica before it meets the others. So one replica of each sequence of nodes is simulated,
  // in all stages.
  const std::vector<Colour> nodes = colours(cluster, health, world / node);
  const bool uniform = std::ranges::all_of(nodes, [&](const Colour& each) { return each == nodes.front(); });
  const std::int64_t span = uniform ? block : std::lcm(layout.shard * layout.optimizer_shard * layout.tensor, block);
  std::map<std::vector<Colour>, std::int64_t> spans;  // value: the first rank of the sequence in a stage
  for (std::int64_t start = 0; start < (uniform ? span : stage); start += span) {
    std::vector<Colour> sequence;
    for (std::int64_t first = 0; first < world; first += stage)
      for (std::int64_t rank = start; rank < std::min(start + span, stage); rank += node)
        sequence.push_back(nodes[static_cast<std::size_t>((first + rank) / node)]);
    spans.try_emplace(std::move(sequence), start);
  }
  for (std::int64_t first = 0; first < world; first += stage)
    for (const auto& [sequence, start] : spans)
      for (std::int64_t rank = start; rank < std::min(start + span, stage); ++rank) some.ranks.push_back(first + rank);
  std::ranges::sort(some.ranks);
  if (some.ranks.empty() || static_cast<std::int64_t>(some.ranks.size()) == world) return every_rank(layout);
  return some;
}

}  // namespace wt
