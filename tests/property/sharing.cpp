// What meets shares: collectives the NICs, those of one communicator their turn, computation its GPU with transfers in
// flight.
#include <catch2/catch.hpp>
#include <numeric>

#include "sim/bounds/bounds.hpp"
#include "tests/fixtures/replayed_run.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("two collectives on different lanes share the NICs; on one lane they follow each other") {
  const Layout layout = layout_of(1, 8, 1);
  const auto routing = balanced_routing(small_model(), 1);
  const double alone = 1e9 * 7 / 8 / 200e9;
  for (Lane second : {Lane::reduce_scatter, Lane::all_gather}) {
    const auto set = same_on_all({collective_op("a", OpKind::all_gather, Lane::all_gather, Axis::shard, 1e9),
                                  collective_op("b", OpKind::reduce_scatter, second, Axis::shard, 1e9)},
                                 8);
    const auto r = replay(set, layout, small_model(), small_cluster(2), FakeCost{}, *routing);
    CHECK(r.step_s == Approx((second == Lane::all_gather ? 4e-5 : 2e-5) + 2 * alone).epsilon(1e-6));
    CHECK(r.timelines[0].ops[0].done_s == Approx(second == Lane::all_gather ? 2e-5 + alone : r.step_s).epsilon(1e-6));
  }
}

TEST_CASE("gathers and reductions of one communicator go in the order of issue, those of other ranks beside them") {
  const Layout layout = layout_of(2, 4, 1);
  const auto routing = balanced_routing(small_model(), 1);
  const double alone = 4e8 * 3 / 4 / 400e9, latency = 2e-5;
  Op work;
  work.name = "work";
  work.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, {7.5e8, 0})};
  Op reduction = collective_op("reduction", OpKind::reduce_scatter, Lane::reduce_scatter, Axis::shard, 4e8);
  reduction.waits = {{"work"}};
  FakeCost cost;
  const double worked = cost.segment(work, BoundRows(0)).seconds;
  REQUIRE(worked > 3 * alone);
  for (bool separate : {false, true})
    for (Axis axis : {Axis::shard, Axis::expert_shard,
                      Axis::replicate}) {  // without expert parallelism the first two are the same ranks
      cost.separate = separate;
      const auto set =
          same_on_all({work, reduction, collective_op("gather", OpKind::all_gather, Lane::all_gather, axis, 4e8)}, 8);
      const auto r = replay(set, layout, small_model(), small_cluster(2), cost, *routing);
      INFO((separate ? "two communicators, " : "one, ") << to_string(axis));
      const double gathered = r.timelines[0].ops[2].done_s;
      if (!separate && axis != Axis::replicate) {
        CHECK(r.timelines[0].ops[1].done_s == Approx(worked + latency + alone).epsilon(1e-6));
        CHECK(gathered == Approx(worked + 2 * (latency + alone)).epsilon(1e-6));
        CHECK(bound1(set, layout, small_cluster(2), cost, *routing, 0, 0) == Approx(gathered).epsilon(1e-6));
      } else {
        CHECK(gathered < 1.1 * (axis == Axis::replicate ? latency + 4e8 / 2 / 50e9 : latency + alone));
      }
    }
}

TEST_CASE(
    "on shared NICs a faster processor can slow a step: its prefetch starts earlier and takes from what the step waits "
    "for") {
  // Of any sharing that leaves no NIC idle this is so (Graham's anomalies); two transfers never meet where each has the
  // cluster to itself, and there the same change helps. tests/property/bounds.cpp counts how often.
  const Layout layout = layout_of(1, 8, 1);
  const double transfer_s = 10e-3, bytes = transfer_s * 200e9 * 8 / 7;
  Op gradients = collective_op("gradients", OpKind::reduce_scatter, Lane::reduce_scatter, Axis::shard, bytes);
  Op product, update, prefetch = collective_op("prefetch", OpKind::all_gather, Lane::all_gather, Axis::shard, bytes);
  product.name = "product", update.name = "update";
  product.work = {make_item(Kernel::gemm, Pass::forward, Precision::bf16, {16000, 0},
                            {16384, 8192})};                                          // 10.7 ms, of that 0.5 ms bytes
  update.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, {5e9, 0})};  // 20 ms, bytes alone
  prefetch.waits = {{"product"}}, update.waits = {{"gradients"}};
  const ProgramSet set = same_on_all({gradients, product, prefetch, update}, 8);
  const auto step_s = [&](const FakeCost& cost) {
    return replay(set, layout, small_model(), small_cluster(2), cost, *balanced_routing(small_model(), 1)).step_s;
  };
  FakeCost cost, twice;
  cost.latency_s = twice.latency_s = 0, twice.flops = 2 * cost.flops;
  const auto seconds = [](const FakeCost& c, const Op& op) { return c.segment(op, BoundRows(0)).seconds; };
  REQUIRE(seconds(cost, product) > transfer_s);
  CHECK(step_s(cost) == Approx(seconds(cost, product) + seconds(cost, update)).epsilon(1e-6));
  const double met_at = seconds(twice, product);  // what is left of the gradients then goes at half the rate
  CHECK(step_s(twice) == Approx(met_at + 2 * (transfer_s - met_at) + seconds(twice, update)).epsilon(1e-6));
  CHECK(step_s(twice) > 1.05 * step_s(cost));
  const auto alone_s = [&](const FakeCost& c) {
    return bound1(set, layout, small_cluster(2), c, *balanced_routing(small_model(), 1), 0, 0);
  };
  CHECK(alone_s(twice) <= alone_s(cost));
}

TEST_CASE("a transfer in flight takes its share of the computation beside it, and no more than one at a time") {
  // Work C beside transfers in flight for F of its time at share s: C = T - s F; where they outlast it, C / (1 - s).
  const Layout layout = layout_of(1, 8, 1);
  const auto routing = balanced_routing(small_model(), 1);
  FakeCost cost;
  const auto seconds = [&](double transfer_s) { return transfer_s * 200e9 * 8 / 7; };  // bytes of a gather
  const auto step = [&](double compute_s, const std::vector<std::pair<Lane, double>>& transfers) {
    std::vector<Op> ops;
    for (const auto& [lane, transfer_s] : transfers)
      ops.push_back(collective_op("c" + std::to_string(ops.size()),
                                  lane == Lane::reduce_scatter ? OpKind::reduce_scatter : OpKind::all_gather, lane,
                                  Axis::shard, seconds(transfer_s)));
    Op work;
    work.name = "work";
    work.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, {(compute_s - 1e-6) * cost.Bps / 8, 0})};
    ops.push_back(work);
    return replay(same_on_all(ops, 8), layout, small_model(), small_cluster(2), cost, *routing);
  };
  const auto done = [](const ReplayResult& r, std::size_t op) { return r.timelines[0].ops[op].done_s; };
  cost.latency_s = 0, cost.flops = 1e30;
  for (double s : {0.0, 0.1, 0.25, 0.5}) {
    cost.slowdown = s;
    const auto hidden = step(10e-3, {{Lane::all_gather, 4e-3}});
    CHECK(done(hidden, 0) == Approx(4e-3).epsilon(1e-6));  // communication is not slowed
    CHECK(done(hidden, 1) == Approx(10e-3 + s * 4e-3).epsilon(1e-6));
    CHECK(hidden.step_s == Approx(10e-3 + s * 4e-3).epsilon(1e-6));
    CHECK(hidden.slowed_s == Approx(s * 4e-3).epsilon(1e-6).margin(1e-15));
    CHECK(hidden.exposed_s == Approx(0).margin(1e-12));
    CHECK(done(step(2e-3, {{Lane::all_gather, 4e-3}}), 1) == Approx(2e-3 / (1 - s)).epsilon(1e-6));
    const auto longer = step(3.9e-3, {{Lane::all_gather, 4e-3}});
    CHECK(longer.step_s == Approx(std::max(4e-3, 3.9e-3 + s * 4e-3)).epsilon(1e-6));
    // One after the other, and both at once on the same links: in flight for 5 ms either way.
    CHECK(done(step(10e-3, {{Lane::all_gather, 4e-3}, {Lane::all_gather, 1e-3}}), 2) ==
          Approx(10e-3 + s * 5e-3).epsilon(1e-6));
    CHECK(done(step(10e-3, {{Lane::all_gather, 4e-3}, {Lane::reduce_scatter, 1e-3}}), 2) ==
          Approx(10e-3 + s * 5e-3).epsilon(1e-6));
  }
  cost.slowdown = 0.25, cost.latency_s = 1e-3;  // in flight from its start, latency included
  CHECK(done(step(10e-3, {{Lane::all_gather, 4e-3}}), 1) == Approx(10e-3 + 0.25 * 5e-3).epsilon(1e-6));
}

TEST_CASE("what communication takes from computation is told apart, and rests on its own evidence") {
  const Run run(layout_of(2, 8, 4, Recompute::block));
  FakeCost cost;
  const auto free = run.replay(small_cluster(4), cost);
  CHECK(free.slowed_s == 0);
  double before = free.step_s;
  for (double s : {0.05, 0.2, 0.4}) {
    cost.slowdown = s;
    const auto slowed = run.replay(small_cluster(4), cost);
    CHECK(slowed.step_s > before);
    CHECK(slowed.step_s < free.step_s / (1 - s));
    REQUIRE(slowed.critical_rank == free.critical_rank);
    CHECK(slowed.lane_busy_s[0] - slowed.slowed_s == Approx(free.lane_busy_s[0]).epsilon(1e-9));
    CHECK(slowed.lane_busy_s[0] + slowed.exposed_s == Approx(slowed.step_s).epsilon(1e-9));
    const auto assumed = static_cast<std::size_t>(Evidence::assumed);  // as the items' times
    CHECK(slowed.evidence_s[assumed] > free.evidence_s[assumed]);
    CHECK(std::accumulate(slowed.evidence_s.begin(), slowed.evidence_s.end(), 0.0) ==
          Approx(slowed.step_s).epsilon(1e-9));
    CHECK(slowed.low_s < slowed.step_s);
    CHECK(slowed.high_s > slowed.step_s);
    before = slowed.step_s;
  }
}
