// Which ranks make all-reduces with which, and what is made of what they saw.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/health/fabric.hpp"
#include "bench/health/judge.hpp"
#include "tests/fixtures/synthetic_fleet.hpp"

using namespace wt;

TEST_CASE("every two neighbours of a ring meet once, and nobody is in two pairs at a time") {
  for (std::size_t nodes = 0; nodes <= 33; ++nodes) {
    INFO(nodes << " nodes");
    const auto rounds = ring_rounds(nodes);
    CHECK(rounds.size() == (nodes < 2 ? 0U : nodes == 2 ? 1U : nodes % 2 == 0 ? 2U : 3U));
    std::map<std::set<std::size_t>, int> met;
    for (const auto& round : rounds) {
      std::set<std::size_t> busy;
      for (const auto& [a, b] : round) {
        CHECK(busy.insert(a).second);
        CHECK(busy.insert(b).second);
        ++met[{a, b}];
      }
    }
    CHECK(met.size() == (nodes < 2 ? 0U : nodes == 2 ? 1U : nodes));
    for (std::size_t i = 0; nodes > 1 && i < nodes; ++i) CHECK(met[{i, (i + 1) % nodes}] == 1);
  }
}

TEST_CASE("ranks of one name are a node, however a launcher has dealt them out") {
  const auto nodes = nodes_of({"b", "a", "b", "c", "a"});
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].name == "b");
  CHECK(nodes[0].ranks == std::vector<std::int64_t>{0, 2});
  CHECK(nodes[1].ranks == std::vector<std::int64_t>{1, 4});
  CHECK(nodes[2].ranks == std::vector<std::int64_t>{3});
  CHECK(nodes_of({}).empty());
}

TEST_CASE("a rank without a GPU is at fault where others have one") {
  using Ranks = std::vector<std::int64_t>;
  CHECK(without_gpu({true, false, true, false}) == Ranks{1, 3});
  CHECK(without_gpu({false, false}).empty());
  CHECK(without_gpu({true, true}).empty());
  CHECK(without_gpu({}).empty());
}

TEST_CASE("a node with a rank that cannot take part is left out, and its neighbours meet") {
  const auto nodes = nodes_of({"a", "a", "b", "b", "c", "c"});
  const auto able = nodes_without(nodes, {3});
  REQUIRE(able.size() == 2);
  CHECK((able[0].name == "a" && able[1].name == "c"));
  const auto rounds = fabric_rounds(able);
  REQUIRE(rounds.size() == 1);
  CHECK((rounds[0][1].ranks == std::array<std::int64_t, 2>{1, 5}));
  CHECK(nodes_without(nodes, {}).size() == 3);
  CHECK(fabric_rounds(nodes_without(nodes, {0, 2})).empty());
}

TEST_CASE("a rail joins the ranks of one place on two nodes") {
  const auto rounds = fabric_rounds(nodes_of({"a", "a", "b", "b"}));
  REQUIRE(rounds.size() == 1);
  REQUIRE(rounds[0].size() == 2);
  CHECK(rounds[0][0].rail == "0");
  CHECK(rounds[0][1].rail == "1");
  CHECK((rounds[0][0].ranks == std::array<std::int64_t, 2>{0, 2}));
  CHECK((rounds[0][1].ranks == std::array<std::int64_t, 2>{1, 3}));
  CHECK((rounds[0][1].a == "a" && rounds[0][1].b == "b"));
}

TEST_CASE("where a node has one rank there are no rails, where it has fewer there are fewer") {
  const auto single = fabric_rounds(nodes_of({"a", "b", "c"}));
  REQUIRE(single.size() == 3);
  for (const auto& round : single) {
    REQUIRE(round.size() == 1);
    CHECK(round[0].rail.empty());
  }
  const auto uneven = fabric_rounds(nodes_of({"a", "a", "b"}));
  REQUIRE(uneven[0].size() == 1);
  CHECK(uneven[0][0].rail == "0");
}

TEST_CASE("no rank is in two pairs of a round") {
  for (int nodes = 2; nodes < 12; ++nodes) {
    std::vector<std::string> names;
    for (int n = 0; n < nodes; ++n)
      for (int rank = 0; rank < 1 + n % 3; ++rank) names.push_back(std::to_string(n));
    for (const auto& round : fabric_rounds(nodes_of(names))) {
      std::set<std::int64_t> busy;
      for (const FabricPair& pair : round)
        for (std::int64_t rank : pair.ranks) CHECK(busy.insert(rank).second);
    }
  }
}

TEST_CASE("a fleet is what its ranks saw: devices of a node together, pairs as slow as their slower end") {
  FleetObservation first, second;
  first.nodes.resize(2), second.nodes.resize(2);
  first.nodes[0].name = "a", first.nodes[1].name = "b";
  second.nodes[0].name = "b", second.nodes[1].name = "a";
  first.nodes[0].devices = {{.id = "GPU-0"}};
  first.nodes[0].storage.write_Bps = {1e9};
  second.nodes[0].devices = {{.id = "GPU-1"}};
  first.links = {{"a", "b", "", 1024, {1.0, 4.0}, 0}};
  second.links = {{"a", "b", "", 1024, {3.0, 2.0}, 1}, {"a", "b", "1", 1024, {5.0}, 0}};
  FleetObservation more;
  more.nodes = {first.nodes[0]};
  more.nodes[0].devices = {{.id = "GPU-2"}}, more.nodes[0].storage = {};
  more.nodes[0].failures = {"rank 2: no product"};
  const FleetObservation fleet = merge_ranks({first, second, more});
  REQUIRE(fleet.nodes.size() == 2);
  REQUIRE(fleet.nodes[0].devices.size() == 2);
  CHECK(fleet.nodes[0].devices[1].id == "GPU-2");
  CHECK(fleet.nodes[0].storage.write_Bps == std::vector<double>{1e9});
  CHECK(fleet.nodes[1].devices.size() == 1);
  CHECK(fleet.nodes[0].failures == std::vector<std::string>{"rank 2: no product"});
  CHECK(fleet_from_json(to_json(fleet), "fleet").nodes[0].failures == fleet.nodes[0].failures);
  REQUIRE(fleet.links.size() == 2);
  CHECK(fleet.links[0].seconds == std::vector<double>{3.0, 4.0});
  CHECK(fleet.links[0].wrong_results == 1);
  CHECK(fleet.links[1].rail == "1");

  second.links[0].seconds = {3.0};
  CHECK_THROWS_WITH(merge_ranks({first, second}), Catch::Contains("2 repetitions at one end and 1 at the other"));
}

namespace {

/// Of a healthy fleet whose pairs all have one payload and no rails; `wrong`: pairs by their first node.
HealthVerdict judged_with_wrong_sums(const std::vector<int>& wrong) {
  test::SyntheticFleet fleet({.nodes = 8, .devices = 4, .rails = 1}, 3);
  for (LinkObservation& link : fleet.fleet.links)
    for (int first : wrong)
      if (link.a == test::SyntheticFleet::name(first)) link.wrong_results = 1;
  return judge(fleet.fleet);
}

std::map<std::string, NodeState> states(const HealthVerdict& verdict) {
  std::map<std::string, NodeState> out;
  for (const NodeVerdict& node : verdict.nodes)
    if (node.state != NodeState::healthy) out[node.node] = node.state;
  return out;
}

}  // namespace

TEST_CASE("a node that could not be measured is to be cordoned, and the message says why") {
  test::SyntheticFleet fleet({.nodes = 8, .devices = 4, .rails = 1}, 3);
  fleet.fleet.nodes[4].failures = {"rank 17: CUDA error: unspecified launch failure", "rank 18: the same"};
  fleet.fleet.nodes[4].devices.clear();  // which are not gone: nobody could look
  const HealthVerdict verdict = judge(fleet.fleet);
  CHECK(states(verdict) == std::map<std::string, NodeState>{{"node-004", NodeState::cordon}});
  REQUIRE(verdict.nodes.front().findings.size() == 1);
  CHECK_THAT(verdict.nodes.front().findings.front().reason,
             Catch::Equals("rank 17: CUDA error: unspecified launch failure (and 1 more)"));
  CHECK(verdict.shared.empty());
}

TEST_CASE("where many nodes could not be measured they share the cause and none is cordoned for it") {
  test::SyntheticFleet fleet({.nodes = 8, .devices = 4, .rails = 1}, 3);
  for (std::size_t i = 0; i < 3; ++i) fleet.fleet.nodes[i].failures = {"rank 0: /nowhere: no such folder"};
  const HealthVerdict verdict = judge(fleet.fleet);
  CHECK(verdict.count(NodeState::cordon) == 0);
  CHECK(verdict.count(NodeState::watch) == 3);
  REQUIRE(verdict.shared.size() == 1);
  CHECK_THAT(verdict.shared[0].reason, Catch::Contains("3 of 8 nodes could not be measured"));
  CHECK(verdict.exit_status() == 1);
}

TEST_CASE("wrong sums with every partner are a node's fault, with one of them either end's") {
  CHECK(states(judged_with_wrong_sums({})).empty());
  CHECK(states(judged_with_wrong_sums({2, 3})) == std::map<std::string, NodeState>{{"node-003", NodeState::cordon}});
  CHECK(states(judged_with_wrong_sums({5})) ==
        std::map<std::string, NodeState>{{"node-005", NodeState::watch}, {"node-006", NodeState::watch}});
}
