// What a plan says in terms of what is preferred: what to measure, what would change the answer; and while loads drift.
#include <catch2/catch.hpp>

#include "planner/plan/plan_details.hpp"
#include "planner/plan/plan_search.hpp"
#include "planner/search/layout_space.hpp"

using namespace wt;

namespace {

const std::string kStudy =
    "name: tiny\nmodel: olmoe-1b-7b\ncluster: hgx-h100\ngpus: 16\nstack: windtunnel-train\ntokens: 20B\n"
    "max_seq_len: 2048\nglobal_train_batch_size: 64\nfailures: llama3\nruns: 50\n";
const std::string kSmall =
    "search: {expert_degrees: [1, 8], microbatch: [1, 2], recompute: [none], token_dispatcher: [alltoall], tie: 0}\n";
const std::string kEnergy =
    "prefer: energy\nprices: {date: 2026-03-01, source: 'assumed: a test', pue: 1.25, power: {compute: 700W, "
    "communicate: 400W, idle: 100W, host: 2000W}}\n";
const std::string kReplicas =
    "replica_loss: {recover: 5m, stall: 1m, source: 'assumed: a test'}\nscale: {mtbf: 0.001}\n";

PlanInputs inputs_of(const std::string& more) { return read_plan_inputs(study_from_text(kStudy + more, "s"), false); }

/// The least of any layout that fits, of the objective.
double least_of_all(const SearchProblem& problem) {
  double least = 1e300;
  for (const Layout& layout : all_layouts(problem))
    if (step_memory(problem, layout).needed() <= problem.memory_limit_bytes)
      least = std::min(least, problem.objective->of(layout, simulate_layout(problem, layout)));
  return least;
}

}  // namespace

TEST_CASE("where energy is preferred, what to measure is weighed in kWh") {
  const Plan plan = make_plan(inputs_of(kSmall + kEnergy + "routing: [olmoe-c4, olmoe-arxiv]\n"));
  CHECK(plan.next.unit == "kWh");
  REQUIRE_FALSE(plan.next.rows.empty());
  for (const Worth& w : plan.next.rows) {
    CHECK((w.changes > 0) == (w.saves > 0));
    CHECK(w.saves <= plan.cost.energy->p50 * plan.robust.largest());
    CHECK_FALSE(w.saves_gpu_hours);
  }
}

TEST_CASE("sensitivities compare what is preferred with the best of the space, also where the step stays") {
  for (const std::string& more : {kReplicas, kEnergy}) {
    const PlanInputs inputs = inputs_of(kSmall + more + "routing: [balanced]\n");
    const Plan plan = make_plan(inputs);
    const Sensitivities all = sensitivities(inputs, plan);
    CHECK(all.unit == (more == kEnergy ? "kWh" : "days"));
    if (more != kEnergy) CHECK(all.value == Approx(plan.schedule.days()).epsilon(1e-3));
    bool checked = false;
    for (const SensitivityRow& row : all.rows) {
      CHECK(row.low.searched);
      if (row.input.find("time between failures") != 0) continue;
      PlanInputs other = inputs;
      other.study.scale.mtbf *= 0.5;
      const PlanSearch asked(other);
      const double value = asked.objective.of(plan.layout, plan.step), least = least_of_all(asked.problem);
      CHECK(row.low.value == Approx(value));
      CHECK(row.low.regret == Approx(value / least - 1).margin(1e-9));
      CHECK(row.low.value > all.value);
      checked = true;
    }
    CHECK(checked);
  }
}

TEST_CASE("a larger space is not searched again, and the sensitivities say so") {
  PlanInputs inputs = inputs_of(kSmall + "routing: [balanced]\n");
  Plan plan = make_plan(inputs);
  plan.search.certificate.enumerated = Sensitivities::kSearchedSpace + 1;
  for (const SensitivityRow& row : sensitivities(inputs, plan).rows)
    CHECK_FALSE((row.low.searched || row.high.searched));
}

TEST_CASE("the finish date counts the steps of drifting loads, and moves") {
  const std::string drift =
      "routing: [olmoe]\nsearch: {expert_degrees: [8], microbatch: [1], shard_sizes: [16], recompute: [none], "
      "token_dispatcher: [alltoall]}\ndrift: {loads: [olmoe-c4, olmoe-github, olmoe-wikipedia], every: 500}\n";
  const PlanInputs inputs = inputs_of(drift);
  const Plan moved = make_plan(inputs);
  REQUIRE(moved.replacement);
  const double with_moves_s = moved.replacement->options[moved.replacement->chosen].with_moves_s;
  CHECK(moved.run_step_s() == Approx(with_moves_s));
  CHECK(moved.schedule.input.step_s.value == Approx(with_moves_s));
  CHECK(moved.runs.scenario.step_s == Approx(with_moves_s));

  PlanInputs fixed = inputs;
  fixed.stack.layouts.placement = PlacementSupport::none;
  const Plan kept = make_plan(fixed);
  CHECK_FALSE(kept.replacement);
  PlanSearch asked(fixed);
  double mean_s = 0;
  for (const LoadScenario& loads : inputs.drift->loads) {
    asked.problem.scenarios = {loads};
    mean_s += simulate_layout(asked.problem, kept.layout).step_s / 3;
  }
  CHECK(kept.run_step_s() == Approx(mean_s));
  fixed.drift.reset();
  const Plan still = make_plan(fixed);
  CHECK(kept.schedule.days() / still.schedule.days() == Approx(mean_s / still.step.step_s).epsilon(1e-3));
  CHECK(still.drift == 1);
}
