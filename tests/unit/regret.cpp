// Choosing under times known to an interval, against numbers worked out by hand and brute force.
#include "planner/regret/regret.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "planner/plan/plan.hpp"
#include "planner/regret/robust_choice.hpp"
#include "tests/fixtures/small_search.hpp"

using namespace wt;
using namespace wt::test;

namespace {

constexpr auto kNoPreference = [](std::size_t, std::size_t) { return false; };

/// Of layouts without tensor groups, context ranks and pipelines, on a slower network.
struct Compared : Small {
  Compared() {
    problem.cluster.nic_Bps = 5e9;
    problem.stack = {};
    problem.peak_flops = 0;
    for (LoadScenario& load : problem.scenarios) load.counts.resize(1);  // all layers alike
    problem.space.simulations = 200;
    problem.space.microbatches = {1};
    problem.space.pipeline_degrees = problem.space.tensor_degrees = problem.space.context_degrees = {1};
  }
};

/// Times that are that many times as high.
FakeCost times_as_high(double kernels, double collectives) {
  FakeCost cost;
  cost.flops /= kernels, cost.Bps /= kernels;
  cost.latency_s *= collectives, cost.efficiency /= collectives;
  return cost;
}

std::size_t scenario_of(const RegretTable& table, const std::string& name) {
  const auto found = std::find(table.scenarios.begin(), table.scenarios.end(), name);
  INFO(name);
  REQUIRE(found != table.scenarios.end());
  return static_cast<std::size_t>(found - table.scenarios.begin());
}

MissingShape shape(double seconds) {
  return {make_item(Kernel::copy, Pass::forward, Precision::bf16, {1024, 0}), seconds};
}

Worth worth_of(const std::string& what, std::size_t shapes, bool joint = false) {
  Worth out;
  out.what = what;
  out.joint = joint;
  out.shapes.assign(shapes, shape(1));
  double seconds = 0;
  for (const MissingShape& each : out.shapes) seconds += estimated_s(each, true, kBenchSamples);
  out.minutes = seconds / 60;
  return out;
}

}  // namespace

TEST_CASE("the smallest largest regret of two layouts in two scenarios") {
  // In the middle the first takes 10 s and the second 11, at the other times 14 and 12.
  const RegretTable table{{"central", "slow"}, {{10, 11}, {14, 12}}};
  CHECK(table.regret(0, 0) == 0);
  CHECK(table.regret(0, 1) == Approx(0.1));
  CHECK(table.largest(0) == Approx(14.0 / 12 - 1));
  CHECK(table.worst(0) == 1);
  CHECK(table.worst(1) == 0);
  CHECK(least_regret(table, 0, kNoPreference) == 1);
  // Within a tie of 10 % a preference decides, below it not.
  const auto first = [](std::size_t a, std::size_t b) { return a < b; };
  CHECK(least_regret(table, 0.1, first) == 0);
  CHECK(least_regret(table, 0.06, first) == 1);
}

TEST_CASE("what knowing a time of two values is worth") {
  const std::vector<std::vector<double>> steps_s{{10, 11}, {14, 12}};
  // With the second chosen, knowing the first case takes the first layout and saves 1 s of 11.
  const ValueOfKnowing even = value_of_knowing(steps_s, {0.5, 0.5}, 1, 0);
  CHECK(even.changes == 0.5);
  CHECK(even.saves_s == Approx(0.5));
  const ValueOfKnowing rare = value_of_knowing(steps_s, {0.1, 0.9}, 1, 0);
  CHECK(rare.changes == 0.1);
  CHECK(rare.saves_s == Approx(0.1));
  // 10 % behind is not worth a change within a tie of 20 %, and of it 4 % were given up already.
  CHECK(value_of_knowing(steps_s, {0.5, 0.5}, 1, 0.2).changes == 0);
  CHECK(value_of_knowing(steps_s, {0.5, 0.5}, 1, 0, 0.04).saves_s == Approx(0.5 * 0.06 * 10));
  // A layout that is the best whatever the time: knowing it is worth nothing.
  CHECK(value_of_knowing({{10, 11}, {11, 12}}, {0.5, 0.5}, 0, 0).saves_s == 0);
}

TEST_CASE("what knowing a log-normal time is worth, by the normal's partial expectation") {
  // The chosen layout takes 10 s whatever the time, the other 9 s at its low end and 11 s at its high end.
  const ValueOfKnowing known = value_of_knowing({std::vector<double>{10, 9}, {10, 10}, {10, 11}}, 0, 0);
  // E[min(1, -z / c)] over z < 0 with c the 90 % quantile: (density(0) - density(c)) / c + 0.1.
  constexpr double kEnd = 1.2815516, kDensityAt0 = 0.3989423, kDensityAtEnd = 0.1754983;
  CHECK(known.saves_s == Approx((kDensityAt0 - kDensityAtEnd) / kEnd + 0.1).epsilon(0.003));
  CHECK(known.changes == Approx(0.5));
  // More than 5 % behind: the time is below half of the way to the low end, z < -c / 2.
  CHECK(value_of_knowing({std::vector<double>{10, 9}, {10, 10}, {10, 11}}, 0, 1 / 0.95 - 1).changes ==
        Approx(0.2608).margin(0.005));
}

TEST_CASE("a class at an end of its interval moves its own times") {
  const FakeCost cost;
  const WorkItem product = make_item(Kernel::gemm, Pass::forward, Precision::bf16, {64, 0}, {512, 512}),
                 copy = make_item(Kernel::copy, Pass::forward, Precision::bf16, {1 << 20, 0});
  const ClassAtEnd slow(cost, {.name = "gemm", .kernels = {Kernel::gemm}}, IntervalEnd::high);
  CHECK(slow.item(product, 0).seconds == Approx(1.1 * cost.item(product, 0).seconds));
  CHECK(slow.item(copy, 0).seconds == cost.item(copy, 0).seconds);
  Op op;
  op.work = {product, copy};
  const double product_s = cost.item(product, 0).seconds, copy_s = cost.item(copy, 0).seconds;
  CHECK(slow.segment(op, 0, Clock{}).seconds ==
        Approx(cost.segment(op, 0, Clock{}).seconds * (1.1 * product_s + copy_s) / (product_s + copy_s)));
  CHECK(slow.collective(OpKind::all_gather, 1e6, 8, 2).latency_s == cost.latency_s);

  const TimeClass gathers{.name = "gathers", .collectives = {{OpKind::all_gather, true}}};
  const ClassAtEnd far(cost, gathers, IntervalEnd::high), near(cost, gathers, IntervalEnd::low);
  CHECK(far.collective(OpKind::all_gather, 1e6, 8, 2).latency_s == Approx(1.2 * cost.latency_s));
  CHECK(far.collective(OpKind::all_gather, 1e6, 8, 2).efficiency == Approx(1 / 1.2));
  CHECK(near.collective(OpKind::all_gather, 1e6, 8, 2).efficiency == 1);  // no more than the wires have
  CHECK(far.collective(OpKind::all_gather, 1e6, 8, 1).latency_s == cost.latency_s);
  CHECK(far.collective(OpKind::all_reduce, 1e6, 8, 2).latency_s == cost.latency_s);
}

TEST_CASE("the end of a class's interval has what steps are off by, on each kind of node its own") {
  FakeCost cost;
  cost.others = std::make_shared<FakeCost>();
  const WorkItem product = make_item(Kernel::gemm, Pass::forward, Precision::bf16, {64, 0}, {512, 512});
  const TimeClass both{.name = "both", .kernels = {Kernel::gemm}, .collectives = {{OpKind::all_gather, true}}};
  const ClassAtEnd slow(cost, both, IntervalEnd::high, {{0.5, 1.5}, {0.4, 2}});
  const double central_s = cost.item(product, 0).seconds;  // within 10 % by itself
  CHECK(slow.item(product, 0).seconds == Approx(1.1 * 1.5 * central_s));
  CHECK(slow.on(1).item(product, 0).seconds == Approx(1.1 * 2 * central_s));
  CHECK(slow.collective(OpKind::all_gather, 1e6, 8, 2).latency_s == Approx(1.5 * cost.latency_s));
  CHECK(slow.on(1).collective(OpKind::all_gather, 1e6, 8, 2).latency_s == Approx(2 * cost.latency_s));
}

TEST_CASE("classes by themselves and together") {
  TimeClass all;
  all.kernels = {Kernel::gemm, Kernel::copy};
  all.collectives = {{OpKind::all_gather, true}, {OpKind::all_reduce, true}, {OpKind::all_gather, false}};
  all.slowdown = true;
  CHECK(single_classes(all).size() == 6);
  const std::vector<TimeClass> joint = joint_classes(all);
  REQUIRE(joint.size() == 2);  // one collective within a node is no group
  CHECK(joint[0].name == "all kernels");
  CHECK(joint[1].collectives.size() == 2);
}

TEST_CASE("a comparison's steps are those of simulations at the times and loads that it names") {
  Compared s;
  const SearchResult search = search_layouts(s.problem);
  const RobustChoice robust = choose_robust(s.problem, search);
  REQUIRE(robust.layouts.size() > 2);
  CHECK(robust.not_reached.empty());
  const std::size_t slow = scenario_of(robust.table, "with all collectives between nodes at the slow end"),
                    alone = scenario_of(robust.table, "with loads of b alone"),
                    kernels = scenario_of(robust.table, "with all kernels at the fast end");
  const FakeCost far = times_as_high(1, 1.2), fast = times_as_high(0.9, 1);
  for (std::size_t i = 0; i < robust.layouts.size(); ++i) {
    const Candidate& c = search.candidates[robust.layouts[i]];
    CHECK(robust.table.steps_s[0][i] == c.value);
    const auto simulated = [&](const OpCost& cost, std::vector<LoadScenario> scenarios) {
      SearchProblem p{.model = s.model,
                      .cluster = s.problem.cluster,
                      .cost = cost,
                      .gpus = 16,
                      .seq = 512,
                      .global_batch = 32,
                      .space = s.problem.space,
                      .scenarios = std::move(scenarios)};
      return simulate_layout(p, c.layout).step_s;
    };
    CHECK(robust.table.steps_s[alone][i] == simulated(s.cost, {s.problem.scenarios[1]}));
    CHECK(robust.table.steps_s[kernels][i] == Approx(simulated(fast, s.problem.scenarios)).epsilon(0.02));
    CHECK(robust.table.steps_s[slow][i] <= simulated(far, s.problem.scenarios) * (1 + 1e-9));
    CHECK(robust.table.steps_s[slow][i] >= c.value);
  }
}

TEST_CASE("layouts too large for the budget are compared at even loads, in proportion") {
  Compared s;
  SearchResult search = search_layouts(s.problem);
  for (Candidate& c : search.candidates)
    if (c.result) c.result->work = 10'000'000 * c.result->ranks;  // as if their ranks did so much
  const RobustChoice robust = choose_robust(s.problem, search);
  CHECK(robust.even_loads);
  REQUIRE(robust.layouts.size() == 3);
  CHECK(std::ranges::count(robust.layouts, search.best) == 1);
  CHECK(std::ranges::count(robust.layouts, search.chosen) == 1);
  CHECK(robust.not_reached == std::vector<std::string>{"loads of a", "loads of b"});
  CHECK_THAT(robust.sentence, Catch::Contains("even loads"));
  const std::size_t slow = scenario_of(robust.table, "with all collectives between nodes at the slow end");
  const VariedClass* between = nullptr;
  for (const VariedClass& each : robust.classes)
    if (each.scenarios[1] == slow) between = &each;
  REQUIRE(between);
  const ClassAtEnd far(s.cost, between->times, IntervalEnd::high);
  for (std::size_t i = 0; i < robust.layouts.size(); ++i) {
    const Candidate& c = search.candidates[robust.layouts[i]];
    const auto even_s = [&](const OpCost& cost) {
      const SearchProblem p{.model = s.model,
                            .cluster = s.problem.cluster,
                            .cost = cost,
                            .gpus = 16,
                            .seq = 512,
                            .global_batch = 32,
                            .space = s.problem.space};
      return simulate_layout(p, c.layout).step_s;
    };
    CHECK(robust.table.steps_s[0][i] == c.value);
    CHECK(robust.table.steps_s[slow][i] == Approx(c.value * even_s(far) / even_s(s.cost)));
  }
  for (std::size_t k = 1; k < robust.classes.size(); ++k)  // joint classes first
    CHECK(robust.classes[k - 1].times.single() <= robust.classes[k].times.single());
}

TEST_CASE("where a time is off, the best of the compared layouts is close to the best of all") {
  Compared s;
  const RobustChoice robust = choose_robust(s.problem, search_layouts(s.problem));
  REQUIRE(robust.classes.size() > 3);
  for (const VariedClass& varied : robust.classes) {
    if (varied.times.single()) continue;
    for (const IntervalEnd end : {IntervalEnd::low, IntervalEnd::high}) {
      const ClassAtEnd cost(s.cost, varied.times, end);
      SearchProblem p{.model = s.model,
                      .cluster = s.problem.cluster,
                      .cost = cost,
                      .gpus = 16,
                      .seq = 512,
                      .global_batch = 32,
                      .space = s.problem.space,
                      .memory_limit_bytes = 1e18,
                      .scenarios = s.problem.scenarios};
      const std::size_t scenario = varied.scenarios[end == IntervalEnd::low ? 0 : 1];
      const auto& steps_s = robust.table.steps_s[scenario];
      const double best_s = search_layouts(p).certificate.incumbent;
      INFO(robust.table.scenarios[scenario]);
      CHECK(*std::ranges::min_element(steps_s) >= best_s * (1 - 1e-9));
      CHECK(*std::ranges::min_element(steps_s) <= best_s * (1 + s.problem.space.tie));
    }
  }
}

TEST_CASE("without a tie the chosen layout has the smallest largest regret, and the sentence says it") {
  Compared s;
  s.problem.space.tie = 0;
  const SearchResult search = search_layouts(s.problem);
  const RobustChoice robust = choose_robust(s.problem, search);
  for (std::size_t i = 0; i < robust.layouts.size(); ++i) CHECK(robust.largest() <= robust.table.largest(i));
  CHECK_THAT(robust.sentence, Catch::Contains(robust.largest() == 0 ? "the best in each" : "behind the best"));
  SearchResult alone = search;
  for (std::size_t i = 0; i < alone.candidates.size(); ++i)
    if (i != alone.best) alone.candidates[i].result.reset();
  alone.chosen = alone.best;
  const RobustChoice single = choose_robust(s.problem, alone);
  CHECK(single.layouts == std::vector{alone.best});
  CHECK(single.sentence.empty());
}

TEST_CASE("the best minutes: the first rows whole, then as many shapes as fit, the rest left out") {
  MeasureNext next;
  next.rows = {worth_of("first", 2), worth_of("both", 6, true), worth_of("second", 4), worth_of("third", 1)};
  next.rows.push_back({});  // not of kernels
  const double each_s = estimated_s(shape(1), true, kBenchSamples);
  const WorthMinutes some = worth_minutes(next, 4.5 * each_s, true);
  REQUIRE(some.taken.size() == 2);
  CHECK(some.taken[0].shapes.size() == 2);
  CHECK(some.taken[1].row.what == "second");
  CHECK(some.taken[1].shapes.size() == 2);
  REQUIRE(some.left_out.size() == 1);
  CHECK(some.left_out[0].what == "third");
  CHECK(some.seconds == Approx(4 * each_s));
  CHECK(worth_minutes(next, 1e6, true).left_out.empty());
  CHECK(worth_minutes(next, 0.5 * each_s, true).taken.empty());
}

TEST_CASE("a plan says what to measure next, the most days a minute first") {
  const std::string study =
      "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: torchtitan\ntokens: 20B\n"
      "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: [olmoe-c4, olmoe-arxiv]\nfailures: llama3\nruns: 50\n"
      "search: {expert_degrees: [1, 8], microbatch: [1, 2], shard_sizes: [8, 16], tie: 0}\n";
  const PlanInputs inputs = read_plan_inputs(study_from_text(study, "study.yaml"), false);
  const Plan plan = make_plan(inputs);
  REQUIRE_FALSE(plan.next.rows.empty());
  CHECK(plan.search.chosen == plan.robust.layouts[plan.robust.chosen]);
  double before = std::numeric_limits<double>::infinity();
  for (const Worth& w : plan.next.rows) {
    CHECK(w.changes >= 0);
    CHECK(w.changes <= 1);
    CHECK((w.changes > 0) == (w.saves > 0));
    CHECK(w.saves <= plan.schedule.days() * plan.robust.largest());
    if (w.joint || !w.minutes || w.saves == 0) continue;
    CHECK(w.saves / *w.minutes <= before);
    before = w.saves / *w.minutes;
  }
  // More samples take longer and save the same.
  const MeasureNext thorough = measure_next(inputs, plan, 90);
  for (const Worth& w : thorough.rows)
    for (const Worth& quick : plan.next.rows)
      if (w.what == quick.what && !w.shapes.empty()) {
        CHECK(*w.minutes > *quick.minutes);
        CHECK(w.saves == quick.saves);
      }
}
