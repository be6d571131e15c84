#include "trainer/checkpoint/copy_plan.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "trainer/pch.hpp"

namespace wt {
namespace {

using Ranks = std::vector<std::int64_t>;

std::string rack_of(const CopyPlace& place) { return place.rack.empty() ? "of " + place.node : place.rack; }

/// Nodes grouped by rack; racks, and nodes in each, are in the order of their first ranks.
class Racks {
 public:
  explicit Racks(const std::vector<CopyPlace>& ranks) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      Ranks& of_node = ranks_[ranks[rank].node];
      if (of_node.empty()) add(rack_of(ranks[rank]), ranks[rank].node);
      of_node.push_back(static_cast<std::int64_t>(rank));
    }
  }
  std::size_t count() const { return racks_.size(); }
  const Ranks& ranks(const std::string& node) const { return ranks_.at(node); }

  const std::string& partner(const std::string& node) const {
    for (std::size_t rack = 0; rack < racks_.size(); ++rack) {
      const auto& nodes = racks_[rack].second;
      const auto place = static_cast<std::size_t>(std::ranges::find(nodes, node) - nodes.begin());
      if (place == nodes.size()) continue;
      if (racks_.size() == 1) return nodes[(place + 1) % nodes.size()];
      const auto& next = racks_[(rack + 1) % racks_.size()].second;
      return next[place % next.size()];
    }
    return node;
  }

 private:
  void add(const std::string& rack, const std::string& node) {
    auto it = std::ranges::find_if(racks_, [&](const auto& r) { return r.first == rack; });
    if (it == racks_.end()) it = racks_.insert(it, {rack, {}});
    it->second.push_back(node);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> racks_;
  std::map<std::string, Ranks> ranks_;
};

}  // namespace

std::vector<std::int64_t> node_leaders(const std::vector<CopyPlace>& ranks) {
  const Racks racks(ranks);
  Ranks out;
  for (const CopyPlace& place : ranks) out.push_back(racks.ranks(place.node).front());
  return out;
}

CopyPlan plan_copies(const std::vector<CopyPlace>& ranks, bool peer) {
  const Racks racks(ranks);
  CopyPlan plan{std::vector<bool>(ranks.size()), Ranks(ranks.size(), -1)};
  std::map<std::int64_t, Ranks> keepers;  // by shard
  std::set<std::pair<std::string, std::int64_t>> kept;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    plan.keeps[rank] = kept.emplace(ranks[rank].node, ranks[rank].shard).second;
    if (plan.keeps[rank]) keepers[ranks[rank].shard].push_back(static_cast<std::int64_t>(rank));
  }
  if (!peer) return plan;
  for (const auto& [shard, of_shard] : keepers) {
    const auto place = [&](std::int64_t rank) { return ranks[static_cast<std::size_t>(rank)]; };
    const CopyPlace first = place(of_shard.front());
    const bool apart = std::ranges::any_of(of_shard, [&](std::int64_t rank) {
      return racks.count() > 1 ? rack_of(place(rank)) != rack_of(first) : place(rank).node != first.node;
    });
    const std::string& partner = racks.partner(first.node);
    if (apart || partner == first.node) continue;
    const Ranks &own = racks.ranks(first.node), &others = racks.ranks(partner);
    const auto position = static_cast<std::size_t>(std::ranges::find(own, of_shard.front()) - own.begin());
    plan.holder[static_cast<std::size_t>(of_shard.front())] = others[position % others.size()];
  }
  return plan;
}

}  // namespace wt
