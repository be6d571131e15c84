#include "bench/health/fabric.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "configs/base/error.hpp"

namespace wt {
namespace {

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void add_node(FleetObservation& fleet, const NodeObservation& seen) {
  const auto known = std::ranges::find_if(fleet.nodes, [&](const auto& n) { return n.name == seen.name; });
  if (known == fleet.nodes.end()) {
    fleet.nodes.push_back(seen);
    return;
  }
  append(known->devices, seen.devices);
  append(known->storage.write_Bps, seen.storage.write_Bps);
  append(known->storage.read_Bps, seen.storage.read_Bps);
  append(known->nics, seen.nics);
  append(known->xids, seen.xids);
  append(known->failures, seen.failures);
}

using LinkKey = std::tuple<std::string, std::string, std::string, std::int64_t>;

void add_link(FleetObservation& fleet, std::map<LinkKey, std::size_t>& places, const LinkObservation& seen) {
  const auto [place, first] = places.try_emplace({seen.a, seen.b, seen.rail, seen.bytes}, fleet.links.size());
  if (first) return fleet.links.push_back(seen);
  LinkObservation& known = fleet.links[place->second];
  if (known.seconds.size() != seen.seconds.size())
    throw_usage(
        "links {} - {}: found {} repetitions at one end and {} at the other, needs the same; start all ranks with the "
        "same words",
        seen.a, seen.b, known.seconds.size(), seen.seconds.size());
  for (std::size_t i = 0; i < seen.seconds.size(); ++i) known.seconds[i] = std::max(known.seconds[i], seen.seconds[i]);
  known.wrong_results = std::max(known.wrong_results, seen.wrong_results);
}

}  // namespace

std::vector<FabricNode> nodes_of(const std::vector<std::string>& node_of_rank) {
  std::vector<FabricNode> out;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    auto node = std::ranges::find_if(out, [&](const FabricNode& n) { return n.name == node_of_rank[rank]; });
    if (node == out.end()) node = out.insert(out.end(), {node_of_rank[rank], {}});
    node->ranks.push_back(static_cast<std::int64_t>(rank));
  }
  return out;
}

std::vector<std::int64_t> without_gpu(const std::vector<bool>& gpu_of_rank) {
  std::vector<std::int64_t> out;
  for (std::size_t rank = 0; rank < gpu_of_rank.size(); ++rank)
    if (!gpu_of_rank[rank]) out.push_back(static_cast<std::int64_t>(rank));
  return out.size() == gpu_of_rank.size() ? std::vector<std::int64_t>{} : out;
}

std::vector<FabricNode> nodes_without(std::vector<FabricNode> nodes, const std::vector<std::int64_t>& unable) {
  std::erase_if(nodes, [&](const FabricNode& node) {
    return std::ranges::any_of(node.ranks, [&](std::int64_t rank) { return std::ranges::count(unable, rank) > 0; });
  });
  return nodes;
}

std::vector<std::vector<std::pair<std::size_t, std::size_t>>> ring_rounds(std::size_t nodes) {
  if (nodes < 2) return {};
  if (nodes == 2) return {{{0, 1}}};
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> out(nodes % 2 == 0 ? 2 : 3);
  for (std::size_t i = 0; i + 1 < nodes; ++i) out[i % 2].emplace_back(i, i + 1);
  out.back().emplace_back(nodes - 1, 0);
  return out;
}

std::vector<std::vector<FabricPair>> fabric_rounds(const std::vector<FabricNode>& nodes) {
  std::vector<std::vector<FabricPair>> out;
  for (const auto& round : ring_rounds(nodes.size())) {
    std::vector<FabricPair>& pairs = out.emplace_back();
    for (const auto& [i, j] : round) {
      const FabricNode &a = nodes[i], &b = nodes[j];
      const std::size_t rails = std::min(a.ranks.size(), b.ranks.size());
      const bool one = std::max(a.ranks.size(), b.ranks.size()) == 1;
      for (std::size_t rail = 0; rail < rails; ++rail)
        pairs.push_back({a.name, b.name, one ? "" : std::to_string(rail), {a.ranks[rail], b.ranks[rail]}});
    }
  }
  return out;
}

FleetObservation merge_ranks(const std::vector<FleetObservation>& by_rank) {
  FleetObservation out;
  std::map<LinkKey, std::size_t> places;
  for (const FleetObservation& rank : by_rank) {
    for (const NodeObservation& node : rank.nodes) add_node(out, node);
    for (const LinkObservation& link : rank.links) add_link(out, places, link);
  }
  return out;
}

}  // namespace wt
