// Who keeps copies of which part: every part on two nodes, and in two racks where there are two.
#include <catch2/catch.hpp>
#include <set>

#include "trainer/checkpoint/copy_plan.hpp"

using namespace wt;

namespace {

/// `nodes` of `per_node` ranks each, in racks of `per_rack` nodes (0: unknown); `shards` parts, repeated by replicas.
std::vector<CopyPlace> places(int nodes, int per_node, int per_rack, int shards) {
  std::vector<CopyPlace> out;
  for (int rank = 0; rank < nodes * per_node; ++rank) {
    const int node = rank / per_node;
    out.push_back({std::to_string(node), per_rack > 0 ? "rack" + std::to_string(node / per_rack) : "", rank % shards});
  }
  return out;
}

/// The nodes, or racks, that have each part.
std::vector<std::set<std::string>> having(const std::vector<CopyPlace>& ranks, const CopyPlan& plan, int shards,
                                          std::string CopyPlace::*where) {
  std::vector<std::set<std::string>> out(static_cast<std::size_t>(shards));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto& of_shard = out[static_cast<std::size_t>(ranks[rank].shard)];
    if (plan.keeps[rank]) of_shard.insert(ranks[rank].*where);
    if (plan.holder[rank] >= 0) of_shard.insert(ranks[static_cast<std::size_t>(plan.holder[rank])].*where);
  }
  return out;
}

int copies_sent(const CopyPlan& plan) {
  return static_cast<int>(std::count_if(plan.holder.begin(), plan.holder.end(), [](auto h) { return h >= 0; }));
}

}  // namespace

TEST_CASE("one replica on a ring of nodes: each part on two nodes, each rank keeps one more part") {
  const auto ranks = places(16, 8, 0, 128);
  const CopyPlan plan = plan_copies(ranks, true);
  std::set<std::int64_t> holders;
  for (const auto& nodes : having(ranks, plan, 128, &CopyPlace::node)) CHECK(nodes.size() == 2);
  for (const std::int64_t holder : plan.holder) holders.insert(holder);
  CHECK(holders.size() == 128);  // so that no rank keeps two
}

TEST_CASE("O19: of the pairs of 16 nodes on a ring, 13 in 15 leave every part") {
  const auto ranks = places(16, 2, 0, 32);
  const auto parts = having(ranks, plan_copies(ranks, true), 32, &CopyPlace::node);
  int survived = 0;
  for (int a = 0; a < 16; ++a)
    for (int b = 0; b < a; ++b) {
      const std::set<std::string> lost{std::to_string(a), std::to_string(b)};
      survived += std::none_of(parts.begin(), parts.end(), [&](const auto& nodes) { return nodes == lost; });
    }
  CHECK(survived * 15 == 120 * 13);
}

TEST_CASE("with racks, each part is in two of them, also where racks are of unequal size") {
  for (const int per_rack : {1, 2, 3}) {
    const auto ranks = places(8, 2, per_rack, 16);  // racks of 3, 3 and 2 nodes in the last case
    for (const auto& racks : having(ranks, plan_copies(ranks, true), 16, &CopyPlace::rack)) CHECK(racks.size() == 2);
  }
}

TEST_CASE("replicas in other racks are copies already: nothing is sent") {
  CHECK(copies_sent(plan_copies(places(4, 2, 2, 4), true)) == 0);
  // Both replicas are in one rack of two: one of them sends.
  const auto ranks = places(4, 2, 2, 2);
  CHECK(copies_sent(plan_copies(ranks, true)) == 0);
  auto together = ranks;
  for (auto& place : together) place.shard = (&place - together.data()) % 2 + 2 * (place.rack == "rack1");
  const CopyPlan plan = plan_copies(together, true);
  CHECK(copies_sent(plan) == 4);
  for (const auto& racks : having(together, plan, 4, &CopyPlace::rack)) CHECK(racks.size() == 2);
}

TEST_CASE("a part that two ranks of a node hold is written once; one node and peer: false send nothing") {
  const CopyPlan plan = plan_copies(places(1, 4, 0, 2), true);
  CHECK(plan.keeps == std::vector<bool>{true, true, false, false});
  CHECK(copies_sent(plan) == 0);
  CHECK(copies_sent(plan_copies(places(4, 1, 0, 4), false)) == 0);
}

TEST_CASE("the first rank of each node leads it") {
  const std::vector<CopyPlace> ranks{{"b", "", 0}, {"a", "", 1}, {"b", "", 2}, {"a", "", 3}};
  CHECK(node_leaders(ranks) == std::vector<std::int64_t>{0, 1, 0, 1});
}
