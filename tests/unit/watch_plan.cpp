// A watch that has the plan of its run: what it reads of it, and what the planner answers for fewer nodes.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "planner/cli/watch/watch_report.hpp"
#include "planner/watch/left_over.hpp"
#include "planner/watch/plan_baseline.hpp"
#include "tests/fixtures/small_plan.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Matchers::Contains;

TEST_CASE("plan.json is a run's baseline, and the study beside it is planned again on what is left") {
  const TempDirectory folder;
  const PlanInputs inputs = inputs_of(kSmallStudy);
  const Plan plan = make_plan(inputs);
  const nlohmann::json document = plan_json(inputs, plan);
  write_bytes(folder / "plan.json", document.dump());

  const PlannedRun read = read_planned_run(folder / "plan.json");
  CHECK(read.gpus == 16);
  CHECK(read.step_s == plan.step.step_s);
  CHECK(*read.tokens_per_s == Approx(64 * 2048 / plan.step.step_s));
  CHECK(read.goodput == Approx(document["finish"]["goodput"].get<double>()));
  CHECK(read.imbalance == plan.imbalance);
  CHECK(read.experts_s > 0);
  CHECK(read.experts_s < plan.step.step_s);

  const auto silent = [](const std::string&) {};
  CHECK_THAT(usage_error([&] { planner_of(folder / "plan.json", folder.path(), silent); }), Contains("study.yaml"));
  write_bytes(folder / "study.yaml", study_yaml(inputs.study));
  const AskPlanner ask = planner_of(folder / "plan.json", folder.path(), silent);
  const std::int64_t half = inputs.study.steps() / 2;
  const LossFigures one = ask({.nodes_lost = 1, .step = half, .slow_factor = 2});
  CHECK(*one.remaining_s == Approx(static_cast<double>(inputs.study.steps() - half) * plan.step.step_s));
  CHECK(*one.repair_s == 86400);
  const RecoveryTimes& recovery = plan.schedule.input.recovery;
  CHECK(*one.restart_s == Approx(recovery.total_s() - recovery.detect_s.value));
  // Half of the GPUs: no step is faster than that of twice as many, and none takes much longer than twice as long.
  REQUIRE(one.shrunk_factor);
  CHECK(*one.shrunk_factor > 1.5);
  CHECK(*one.shrunk_factor < 2.5);
  CHECK(read_run(one.shrunk_layout).layout.world() == 8);
  CHECK_FALSE(ask({.nodes_lost = 2, .step = half}).shrunk_factor);
}

TEST_CASE("a damaged plan is refused with its place") {
  const TempDirectory folder;
  write_bytes(folder / "plan.json", "{\"schema\": \"windtunnel.plan/2\"}");
  CHECK_THAT(usage_error([&] { read_planned_run(folder / "plan.json"); }), Contains("/schema"));
  CHECK_THAT(usage_error([&] { read_planned_run(folder / "none.json"); }), Contains("none.json"));
}

TEST_CASE("a drift's table has UNKNOWN where nothing is known, and parts that sum to the step") {
  PlanDrift drift;
  drift.plan.step_s = 10, drift.run.step_s = 12, drift.run.goodput = 1, drift.plan.goodput = 1;
  drift = plan_drift(drift.plan, drift.run);
  const std::vector<Table> tables = drift_tables(drift);
  REQUIRE(tables.size() == 2);
  const auto& parts = tables[1].rows;
  REQUIRE(parts.size() == 6);
  CHECK(parts[0][1].text == "+2.00 s");
  CHECK(*parts[0][2].number == Approx(20));
  for (const int unknown : {1, 2, 3}) CHECK(parts[static_cast<std::size_t>(unknown)][1].text == "UNKNOWN");
  CHECK(*parts[4][1].number == Approx(2));
}
