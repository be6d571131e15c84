// What a plan makes smallest, against simulating every layout; and the bytes of a save, against closed forms.
#include "planner/plan/plan_search.hpp"

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "planner/regret/robust_choice.hpp"
#include "planner/search/group_bounds.hpp"
#include "planner/search/layout_space.hpp"
#include "planner/search/scaled_cost.hpp"
#include "planner/search/search_evaluate.hpp"
#include "sim/program/compose/restore.hpp"
#include "tests/fixtures/check_certificate.hpp"
#include "tests/fixtures/random_layout.hpp"
#include "tests/fixtures/small_search.hpp"

using namespace wt;
using namespace wt::test;
using test::Draw, test::Small;

namespace {

const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: windtunnel-train\ntokens: 20B\n"
    "max_seq_len: 2048\nglobal_train_batch_size: 64\nrouting: [balanced]\nfailures: llama3\nruns: 50\n"
    "search: {expert_degrees: [1, 8], microbatch: [1, 2], recompute: [none], token_dispatcher: [alltoall]}\n";
const std::string kPower =
    "prices: {date: 2026-03-01, source: 'assumed: a test', pue: 1.25, power: {compute: 700W, communicate: 400W, "
    "idle: 100W, host: 2000W}}\n";
const std::string kReplicas =
    "replica_loss: {recover: 5m, stall: 1m, source: 'assumed: a test'}\nscale: {mtbf: 0.001}\n";

struct Planned {
  explicit Planned(const std::string& more)
      : inputs(read_plan_inputs(study_from_text(kStudy + more, "s"), false)),
        cost(*inputs.times, inputs.study.scale),
        problem(search_problem(inputs, cost)),
        objective(inputs, problem) {
    problem.objective = &objective;
  }
  PlanInputs inputs;
  ScaledCost cost;
  SearchProblem problem;
  RunObjective objective;
};

Layout stages(std::int64_t pipeline, std::int64_t replicate, std::int64_t shard, std::int64_t tensor) {
  Layout layout;
  layout.pipeline = pipeline, layout.replicate = replicate, layout.shard = shard, layout.tensor = tensor;
  return layout;
}

}  // namespace

TEST_CASE("a search by days or energy finds what simulating every layout finds, and no bound is above") {
  for (const std::string& more : {std::string(), kReplicas, kPower + "prefer: energy\n"}) {
    Planned p(more);
    const SearchResult r = search_layouts(p.problem);
    double least = 1e300;
    for (const Layout& layout : all_layouts(p.problem)) {
      if (step_memory(p.problem, layout).needed() > p.problem.memory_limit_bytes) continue;
      const Simulated step = simulate_layout(p.problem, layout);
      const double value = p.objective.of(layout, step);
      least = std::min(least, value);
      CHECK(p.objective.least(layout, {step.step_s}) <= value);
      CHECK(p.objective.least_of_any({step.step_s}) <= p.objective.least(layout, {step.step_s}));
      CHECK(p.objective.least(layout, {0.9 * step.step_s}) < p.objective.least(layout, {step.step_s}));
    }
    CHECK(r.certificate.incumbent == least);
    CHECK(r.certificate.unit == (more.find("energy") == std::string::npos ? "days" : "kWh"));
    CHECK(r.certificate.proved);
    CHECK(check_certificate(r).empty());
  }
}

TEST_CASE("the least energy of small spaces is that of brute force and proved, whichever state takes more power") {
  PlanInputs inputs = read_plan_inputs(study_from_text(kStudy + kPower + "prefer: energy\n", "s"), false);
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    Draw draw(seed);
    Small s;
    s.cost.latency_s = draw.of<double>({1e-6, 2e-5});
    s.cost.slowdown = draw.of<double>({0, 0.16});
    s.model.layers = draw.between(3, 6);
    SearchProblem& p = s.problem;
    p.cluster.nic_Bps = draw.of<double>({5e8, 5e9, 50e9});
    p.global_batch = draw.of<std::int64_t>({32, 64});
    p.space.microbatches = {1};
    p.space.recompute = {draw.of<Recompute>({Recompute::none, recompute_from_string("block:first-2")})};
    p.space.expert_degrees = {1, 4};
    p.space.simulations = 10000;
    if (draw.once_in(2)) {
      p.stack.layouts = StackLayouts::all();
      if (p.global_batch == 64) p.space.microbatches = {3};  // of 4 sequences: 3 and 1
      p.stack.layouts.optimizer_shard = false;
      p.space.context_degrees = {1}, p.space.tensor_degrees = {1, 2};
    }
    p.stack.layouts.recompute_anywhere = true;  // also in the first two blocks alone
    if (draw.once_in(4)) p.scenarios.clear();
    PowerSpec& power = *inputs.study.prices->power;
    power.communicate_W.low = power.communicate_W.high = draw.of<double>({50, 400, 900});
    p.cluster.storage_write_Bps = p.cluster.storage_read_Bps = 1e11;
    p.cluster.storage_node_write_Bps = p.cluster.storage_node_read_Bps = 1e10;
    inputs.study.model = s.model, inputs.study.cluster = p.cluster, inputs.study.gpus = p.gpus;
    const RunObjective objective(inputs, p);
    p.objective = &objective;
    GroupBounds bounds(p);
    const LayoutSpace space(p);
    double least = 1e300;
    for (const LayoutGroup& group : space.groups()) {
      const LeastStep any{bounds.step_s(group), bounds.computing_s(group)};
      CHECK(any.computing_s > 0);
      for (const Layout& layout : space.members(group)) {
        const Simulated step = simulate_layout(p, layout);
        double busy_s = 0;
        for (const OpClassTotal& total : step.totals)
          if (total.lane == Lane::compute && total.action != Action::share_tensor) busy_s += total.busy_s;
        INFO("seed " << seed << ": " << key_of(layout));
        CHECK(any.step_s <= step.step_s * (1 + 1e-9));
        CHECK(any.computing_s <= busy_s * (1 + 1e-9));
        const double value = objective.of(layout, step);
        CHECK(objective.least_of_any(any) <= value * (1 + 1e-9));
        CHECK(objective.least(layout, any) <= value * (1 + 1e-9));
        least = std::min(least, value);
      }
    }
    const SearchResult r = search_layouts(p);
    CHECK(r.certificate.incumbent == least);
    CHECK(r.certificate.proved);
    CHECK(check_certificate(r).empty());
  }
}

TEST_CASE("days of the objective are those of the schedule, whose interval is in whole steps") {
  for (const std::string& more :
       {std::string(), kReplicas, std::string("checkpoint: {interval: 1h}\n"),
        std::string("checkpoint: {local: {every: 26s, survival: 0.8, source: 'assumed: a test'}}\n")}) {
    Planned p(more);
    for (const Layout& layout : {stages(1, 2, 8, 1), stages(1, 1, 16, 1), stages(1, 16, 1, 1)}) {
      Simulated step;
      step.step_s = 1.3;
      const RunSchedule schedule =
          make_schedule(p.inputs, layout, checkpoint_times(p.inputs, layout), step.step_s, p.inputs.failures);
      CAPTURE(more, layout.name(), schedule.cadence.interval_s.value, schedule.input.local.interval_steps,
              schedule.cadence.goodput.value);
      CHECK(p.objective.of(layout, step) == Approx(schedule.days()).epsilon(1e-4));
    }
  }
}

TEST_CASE("replicas that may be lost are worth more than a slightly shorter step where nodes fail often") {
  Planned p(kReplicas);
  Simulated step;
  step.step_s = 1;
  const double one = p.objective.of(stages(1, 1, 16, 1), step);
  step.step_s = 1.01;
  CHECK(p.objective.of(stages(1, 16, 1, 1), step) < one);
  Planned job("scale: {mtbf: 0.001}\n");
  step.step_s = 1;
  CHECK(job.objective.of(stages(1, 16, 1, 1), step) >= job.objective.of(stages(1, 1, 16, 1), step));  // a larger save
}

TEST_CASE("energy is that of the job standing still and, in steps, what computing and waiting add") {
  Planned p(kPower + "prefer: energy\nspare_nodes: 1\n");
  Simulated step;
  step.step_s = 2;
  step.totals.resize(1);
  step.totals[0].lane = Lane::compute, step.totals[0].busy_s = 1;
  Planned days(kPower);
  const Layout layout = stages(1, 2, 8, 1);
  const double wall_s = 86400 * days.objective.of(layout, step);
  const double steps_s = 2 * static_cast<double>(p.inputs.study.steps());
  const double idle_W = 24 * 100 + 3 * 2000, extra_W = 16 * (0.5 * 600 + 0.5 * 300);  // one spare of three nodes
  CHECK(p.objective.of(layout, step) == Approx(1.25 * (wall_s * idle_W + steps_s * extra_W) / 3.6e6));
  CHECK_THROWS_WITH(Planned("prefer: energy\n"), Catch::Contains("energy without prices of hgx-h100"));
}

TEST_CASE("a save's bytes of the fullest rank and node, by stage") {
  const StateParts even = state_parts(stages(1, 4, 16, 1), {10}, 12, 8);  // two of eight nodes
  CHECK(even.rank_bytes == 120);
  CHECK(even.nodes == 2);
  CHECK(even.node_bytes == 8 * 120);
  // Stages of 8 ranks, 4 of which hold a copy: half of each node.
  const StateParts half = state_parts(stages(2, 2, 4, 1), {10, 20}, 12, 8);
  CHECK(half.rank_bytes == 240);
  CHECK(half.nodes == 2);
  CHECK(half.node_bytes == 4 * 240);
  // Stages of 4 ranks share a node.
  const StateParts shared = state_parts(stages(4, 1, 2, 2), {10, 20, 30, 5}, 12, 8);
  CHECK(shared.rank_bytes == 360);
  CHECK(shared.nodes == 2);
  CHECK(shared.node_bytes == 12 * 4 * (30 + 5));
}

TEST_CASE("state of the stages sums to that of the model") {
  const ModelSpec model = read_model("olmoe-1b-7b");
  Layout layout = stages(4, 2, 4, 1);
  layout.expert = 4;
  layout.reshard_after_forward = layout.reduce_every_microbatch = false;
  const std::vector<double> elements = state_elements_of_stages(model, layout);
  REQUIRE(elements.size() == 4);
  CHECK(4 * (elements[0] + elements[1] + elements[2] + elements[3]) ==
        Approx(static_cast<double>(model.total_parameters())).epsilon(1e-4));
  CHECK(elements[0] > elements[1]);  // the embedding
  CHECK(elements[3] > elements[1]);  // the output projection
}

TEST_CASE("regrets are of what the search makes smallest, in seconds of the best layout's step") {
  Planned p(kReplicas);
  const SearchResult r = search_layouts(p.problem);
  const RobustChoice robust = choose_robust(p.problem, r);
  const Candidate& best = r.candidates[r.best];
  REQUIRE(robust.layouts.size() > 1);
  REQUIRE(robust.table.scenarios.size() > 1);
  for (std::size_t i = 0; i < robust.layouts.size(); ++i) {
    const Candidate& c = r.candidates[robust.layouts[i]];
    CHECK(robust.table.steps_s[0][i] / best.result->step_s == Approx(c.value / best.value));
    for (const std::vector<double>& steps_s : robust.table.steps_s) {
      CHECK(steps_s[i] > 0.4 * robust.table.steps_s[0][i]);
      CHECK(steps_s[i] < 2.5 * robust.table.steps_s[0][i]);
    }
  }
}
