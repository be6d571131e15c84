// What the agent decides: where ranks go, in which layout, and when a run ends.
#include <catch2/catch.hpp>

#include "trainer/recovery/recovery.hpp"
#include "trainer/recovery/remaining_layout.hpp"

using namespace wt;

namespace {

RunSpec run_of(std::int64_t replicate, std::int64_t shard, std::int64_t expert, std::int64_t batch) {
  RunSpec run;
  run.name = "made up";
  ModelSpec& m = run.model;
  m.name = "made up", m.layers = 2, m.d_model = 64, m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.ffn = 96;
  m.experts = 8, m.top_k = 2, m.vocab = 257;
  run.layout.replicate = replicate, run.layout.shard = shard, run.layout.expert = expert;
  run.seq = 32, run.global_batch = batch, run.steps = 10;
  return run;
}

RecoveryPolicy on_loss(std::vector<Recovery> recoveries, std::int64_t retries_same_place = 1) {
  RecoveryPolicy policy;
  policy.on_loss = std::move(recoveries), policy.retries_same_place = retries_same_place;
  return policy;
}

using Nodes = std::vector<std::int64_t>;
RankFailure killed(const Nodes& ranks, const Fleet::Losses& lost, std::int64_t safe_step = 0) {
  return {ranks, "signal 9 (Killed)", lost, safe_step};
}

}  // namespace

TEST_CASE("the remaining layouts are those that the batch and the model allow, the most ranks first") {
  const RunSpec run = run_of(2, 2, 2, 12);
  const auto layouts = remaining_layouts(run, 3);
  REQUIRE_FALSE(layouts.empty());
  CHECK(layouts.front().layout.world() == 3);  // 12 sequences go over three ranks
  std::int64_t before = 3;
  for (const RunSpec& next : layouts) {
    CHECK_NOTHROW(check_run(next, "remaining"));
    CHECK(next.global_batch == 12);
    CHECK(next.layout.world() <= before);
    before = next.layout.world();
  }
  CHECK(before == 1);
  CHECK(remaining_layouts(run_of(2, 2, 2, 16), 3).front().layout.world() == 2);  // 16 do not
}

TEST_CASE("of equally many ranks the layout comes first that sends fewest bytes") {
  // Without experts: replicas exchange gradients alone, shards gather the weights in each pass, too.
  RunSpec dense = run_of(4, 1, 1, 8);
  dense.model.experts = 0, dense.model.top_k = 0;
  const auto layouts = remaining_layouts(dense, 2);
  REQUIRE(layouts.size() == 3);
  CHECK(layouts[0].layout.name() == "2x1 expert 1");
  CHECK(layouts[1].layout.name() == "1x2 expert 1");
  CHECK(step_traffic_bytes(layouts[0]) < step_traffic_bytes(layouts[1]));
  CHECK(layouts[2].layout.world() == 1);
}

TEST_CASE("of equally many ranks a planned layout comes before those that send fewer bytes, in whole") {
  RunSpec run = run_of(4, 2, 2, 24);
  const auto unplanned = remaining_layouts(run, 6);
  Layout planned = unplanned.front().layout, narrow = planned, other = planned;
  planned.replicate = 1, planned.shard = 6, planned.expert = 1, planned.recompute = Recompute::block;
  narrow.replicate = 1, narrow.shard = 2, narrow.expert = 1;
  other.tensor = 2, other.replicate = 1, other.shard = 3, other.expert = 1;  // which is not trained
  REQUIRE(unplanned.front().layout.name() != planned.name());
  run.smaller_layouts = {other, narrow, planned};
  const auto with = [&](const Layout& layout) {
    RunSpec out = run;
    out.layout = layout;
    return run_to_yaml(out);
  };
  const auto layouts = remaining_layouts(run, 7);
  CHECK(run_to_yaml(layouts[0]) == with(planned));
  CHECK(run_to_yaml(layouts[1]) == with(unplanned.front().layout));
  CHECK(layouts.size() == unplanned.size() + 2);
  CHECK(run_to_yaml(remaining_layouts(run, 2).front()) == with(narrow));
  CHECK(remaining_layouts(run, 7, 1, 2).front().layout.replicate >= 2);  // the policy goes before the plan
  CHECK(remaining_layouts(run, 5).front().layout.world() == 4);          // no plan is worth ranks that stand still
}

TEST_CASE("one rank sends nothing, and all-reduces of n replicas send 2 (n - 1) / n of what they sum") {
  CHECK(step_traffic_bytes(run_of(1, 1, 1, 4)) == 0);
  const double two = step_traffic_bytes(run_of(2, 1, 1, 4)), four = step_traffic_bytes(run_of(4, 1, 1, 4));
  CHECK(four / two == Approx((2 * 3.0 / 4) / (2 * 1.0 / 2)));
}

TEST_CASE("the layout keeps whole nodes and as many replicas as the policy wants") {
  for (const RunSpec& next : remaining_layouts(run_of(4, 2, 2, 24), 7, 2)) CHECK(next.layout.world() % 2 == 0);
  for (const RunSpec& next : remaining_layouts(run_of(4, 2, 2, 24), 6, 1, 2)) CHECK(next.layout.replicate >= 2);
  CHECK(remaining_layouts(run_of(2, 1, 1, 4), 1, 1, 2).empty());
}

TEST_CASE("a spare takes the ranks of a lost node; the node stays out until it is back") {
  Fleet fleet(run_of(2, 2, 2, 16), {1, 0, 1});
  Recoveries recoveries(on_loss({Recovery::spare, Recovery::restart}), fleet);
  CHECK(recoveries.after(killed({1}, {{1, 100.0}}), 0).action == "spare");
  CHECK(fleet.nodes() == Nodes{0, 4, 2, 3});
  CHECK(fleet.excluded() == Nodes{1});
  CHECK(fleet.node_of(1) == 4);
  CHECK(fleet.full());
  CHECK_FALSE(fleet.take_back(99));
  CHECK(recoveries.after(killed({2}, {{2, std::nullopt}}, 2), 0).action == "restart");  // no spare is left
  CHECK(fleet.take_back(100));
  CHECK(recoveries.after(killed({0}, {{0, std::nullopt}}, 4), 101).action == "spare");
  CHECK(fleet.nodes() == Nodes{1, 4, 2, 3});
}

TEST_CASE("a lost rack takes as many spares, or none of them") {
  Fleet fleet(run_of(2, 2, 2, 16), {1, 2, 1});
  Recoveries recoveries(on_loss({Recovery::spare, Recovery::shrink}), fleet);
  CHECK(recoveries.after(killed({2, 3}, {{2, {}}, {3, {}}}), 0).action == "shrink to 2 ranks");  // 16 over 3 nodes: 2
  CHECK(fleet.nodes() == Nodes{0, 1});
  CHECK(fleet.excluded() == Nodes{2, 3});
}

TEST_CASE("a run shrinks to what is left and grows when nodes are back: 4 -> 3 -> 4 and 4 -> 2 -> 3 -> 4 ranks") {
  Fleet fleet(run_of(2, 2, 2, 12), {});
  REQUIRE(fleet.shrink({{1, 10.0}}));
  CHECK(fleet.world() == 3);
  CHECK(fleet.nodes() == Nodes{0, 2, 3});
  CHECK_FALSE(fleet.can_grow());
  REQUIRE(fleet.shrink({{2, 20.0}}));
  CHECK(fleet.world() == 2);
  REQUIRE(fleet.take_back(10));
  REQUIRE(fleet.can_grow());
  fleet.grow();
  CHECK(fleet.world() == 3);
  REQUIRE(fleet.take_back(20));
  fleet.grow();
  CHECK(fleet.run().layout.name() == run_of(2, 2, 2, 12).layout.name());
  CHECK(fleet.nodes() == Nodes{0, 1, 2, 3});
  CHECK(fleet.excluded().empty());
}

TEST_CASE("nothing is left to shrink to: nothing is changed, and the next recovery comes") {
  Fleet fleet(run_of(1, 1, 1, 4), {});
  CHECK_FALSE(fleet.shrink({{0, std::nullopt}}));
  CHECK(fleet.excluded().empty());
  Recoveries recoveries(on_loss({Recovery::shrink, Recovery::wait}), fleet);
  const RecoveryDecision wait = recoveries.after(killed({0}, {{0, 25.0}}), 5);
  CHECK(wait.action == "wait");
  CHECK(wait.wait_s == 20);
  CHECK(fleet.nodes() == Nodes{0});
  CHECK_FALSE(recoveries.after(killed({0}, {{0, std::nullopt}}), 30).goes_on);  // it never comes back
}

TEST_CASE("the same failure without a new checkpoint in between ends a run; another one, or a checkpoint, does not") {
  Fleet fleet(run_of(2, 2, 2, 16), {});
  Recoveries recoveries({}, fleet);
  const RankFailure one{{1}, "exit status 4", {}, 4}, other{{2}, "exit status 4", {}, 4};
  CHECK(recoveries.after(one, 0).action == "restart");
  CHECK(recoveries.after(other, 0).action == "restart");
  CHECK(recoveries.after({{1}, "signal 11 (Segmentation fault)", {}, 4}, 0).action == "restart");
  const RecoveryDecision end = recoveries.after(one, 0);
  CHECK_FALSE(end.goes_on);
  CHECK(end.action ==
        "2 times without a new checkpoint in between; none of the policy's recoveries is possible: restart");
  CHECK(recoveries.after({{1}, "exit status 4", {}, 8}, 0).action == "restart");
}

TEST_CASE("a process that fails on a living node is tried again there; then the node counts as lost") {
  Fleet fleet(run_of(2, 2, 2, 16), {1, 0, 1});
  Recoveries recoveries(on_loss({Recovery::spare}, 2), fleet);
  const RankFailure failure{{3}, "exit status 7", {}, 0};
  CHECK(recoveries.after(failure, 0).action == "restart");
  CHECK(recoveries.after(failure, 0).action == "restart");
  CHECK(recoveries.after(failure, 0).action == "spare");
  CHECK(fleet.nodes() == Nodes{0, 1, 2, 4});
  CHECK(recoveries.after(failure, 0).action == "restart");  // on another node it is another failure
}

TEST_CASE("a run goes on without the replicas that lost ranks; those that are left keep their order") {
  Fleet fleet(run_of(3, 2, 2, 18), {});
  Recoveries recoveries(on_loss({Recovery::without_replica, Recovery::restart}), fleet);
  CHECK(recoveries.go_on_without(killed({3}, {{3, 10.0}}), {3}) ==
        Nodes{0, 1, 4, 5});  // its mate, rank 2, goes as well
  CHECK(fleet.run().layout.name() == run_of(2, 2, 2, 18).layout.name());
  CHECK(fleet.nodes() == Nodes{0, 1, 4, 5});
  CHECK(fleet.excluded() == Nodes{3});
  CHECK(fleet.missing_replicas() == 1);
  CHECK(fleet.add_replicas() == 0);  // node 2 alone stands by
  CHECK(recoveries.go_on_without(killed({0, 2}, {}), {0, 2}).empty());
  CHECK(fleet.world() == 4);  // unchanged: no replica would be left
  CHECK(recoveries.go_on_without(killed({1}, {}), {1}) == Nodes{2, 3});
  REQUIRE(fleet.take_back(10));
  CHECK(fleet.add_replicas() == 2);
  CHECK(fleet.missing_replicas() == 0);
  CHECK(fleet.nodes() == Nodes{4, 5, 0, 1, 2, 3});  // those that come back are behind the others
}

TEST_CASE("a node whose processes fail again in the same way counts as lost, whatever rank they have by then") {
  const auto [safe_step, excluded] = GENERATE(table<std::int64_t, Nodes>({{0, {1}}, {4, {}}}));  // 4: a new checkpoint
  Fleet fleet(run_of(3, 2, 2, 18), {});
  Recoveries recoveries(on_loss({Recovery::without_replica, Recovery::restart}), fleet);
  CHECK(recoveries.go_on_without({{1}, "exit status 7", {}, 0}, {1}) == Nodes{2, 3, 4, 5});
  REQUIRE(fleet.add_replicas() == 1);
  REQUIRE(fleet.node_of(5) == 1);
  CHECK(recoveries.go_on_without({{5}, "exit status 7", {}, safe_step}, {5}) == Nodes{0, 1, 2, 3});
  CHECK(fleet.excluded() == excluded);
  CHECK(fleet.add_replicas() == (excluded.empty() ? 1 : 0));
}

TEST_CASE("a failure is counted once, whether others go on without its replica or all start again") {
  Fleet fleet(run_of(1, 2, 2, 16), {});
  Recoveries recoveries(on_loss({Recovery::without_replica, Recovery::restart}), fleet);
  const RankFailure failure{{1}, "exit status 7", {}, 0};
  for (const bool goes_on : {true, false}) {
    CHECK(recoveries.go_on_without(failure, {1}).empty());  // the only replica
    CHECK(recoveries.after(failure, 0).goes_on == goes_on);
  }
}

TEST_CASE("replicas that were to come back and did not are missing as before") {
  Fleet fleet(run_of(3, 2, 2, 18), {});
  REQUIRE_FALSE(fleet.drop_replicas({0, 2}, {}).empty());
  REQUIRE(fleet.add_replicas() == 2);
  fleet.undo_added(2, {});
  CHECK(fleet.missing_replicas() == 2);
  CHECK(fleet.run().layout.name() == run_of(1, 2, 2, 18).layout.name());
  CHECK(fleet.nodes() == Nodes{4, 5});
  CHECK(fleet.add_replicas() == 2);
  CHECK(fleet.nodes() == Nodes{4, 5, 0, 1, 2, 3});
  fleet.undo_added(2, {{2, std::nullopt}});
  CHECK(fleet.add_replicas() == 1);
  CHECK(fleet.nodes() == Nodes{4, 5, 0, 1});
}

TEST_CASE("ranks that do not come are counted as those that fail") {
  Fleet fleet(run_of(2, 2, 2, 16), {});
  Recoveries recoveries({}, fleet);
  const RankFailure silent{{2, 3}, "silence", {}, 0};
  CHECK(recoveries.lost_by_silence(silent).empty());
  CHECK(recoveries.lost_by_silence(silent) == Fleet::Losses{{2, std::nullopt}, {3, std::nullopt}});
}

TEST_CASE("a restart of all has all nodes that live, in the best layout where some are missing") {
  Fleet fleet(run_of(2, 2, 2, 12), {});
  REQUIRE_FALSE(fleet.drop_replicas({0}, {}).empty());
  REQUIRE(fleet.complete());  // all nodes live
  CHECK(fleet.nodes() == Nodes{0, 1, 2, 3});
  CHECK(fleet.full());
  REQUIRE_FALSE(fleet.drop_replicas({0}, {{0, std::nullopt}}).empty());
  REQUIRE(fleet.complete());  // 12 sequences over three ranks
  CHECK(fleet.nodes() == Nodes{1, 2, 3});
  CHECK(fleet.missing_replicas() == 0);
  Fleet strict(run_of(3, 1, 1, 6), {}, 2);
  REQUIRE_FALSE(strict.drop_replicas({0}, {{0, std::nullopt}}).empty());
  CHECK(strict.drop_replicas({0}, {}).empty());  // min_replicas
}

TEST_CASE("a spare takes the place of a lost replica's node") {
  Fleet fleet(run_of(2, 2, 2, 16), {2, 0, 1});
  Recoveries recoveries(on_loss({Recovery::without_replica, Recovery::restart}), fleet);
  CHECK(recoveries.go_on_without(killed({0, 1}, {{0, std::nullopt}}), {0, 1}) == Nodes{2, 3});
  CHECK(fleet.add_replicas() == 1);
  CHECK(fleet.nodes() == Nodes{1, 2});
}

TEST_CASE("no run goes on without replicas where the policy has another recovery first, or none of the kind") {
  Fleet fleet(run_of(2, 2, 2, 16), {2, 0, 1});
  Recoveries spare(on_loss({Recovery::spare, Recovery::without_replica}), fleet);
  CHECK(spare.go_on_without(killed({3}, {{1, std::nullopt}}), {3}).empty());
  CHECK(Recoveries(on_loss({Recovery::restart}), fleet).go_on_without(killed({3}, {}), {3}).empty());
  CHECK(fleet.world() == 4);
  CHECK(spare.go_on_without(killed({3}, {}), {3}) == Nodes{0, 1});  // its node lives: no spare is needed
  RunSpec shared = run_of(2, 2, 2, 16);
  shared.layout.optimizer_shard = 2;
  CHECK(Fleet(shared, {}).drop_replicas({3}, {}).empty());
  CHECK(Fleet(run_of(4, 1, 1, 16), {2, 0, 0}).drop_replicas({3}, {}).empty());  // two replicas a node
}

TEST_CASE("a world that is no whole number of nodes is refused") {
  CHECK_THROWS_WITH(Fleet(run_of(2, 2, 2, 16), {3, 0, 0}), Catch::Contains("found 3") && Catch::Contains("4 ranks"));
}
