// A layout that nobody has run is passed over for the simple alternative, unless its lead is sure.
#include "planner/plan/simple_alternative.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "planner/cli/plan/plan_report.hpp"

using namespace wt;

namespace {

/// A layout whose objective is its step, with an interval from step_s / factor to step_s * factor.
Candidate step(double step_s, double factor) {
  Candidate out;
  out.value = step_s;
  out.result.emplace();
  out.result->step_s = step_s, out.result->low_s = step_s / factor, out.result->high_s = step_s * factor;
  return out;
}

RunFeatures pipeline(double gpus) {
  return {
      .family = "MoE, tensor and pipeline", .gpu = "H200", .stack = "s", .format = "bf16", .gpus = gpus, .split = 4};
}

MeasuredRun measured(const RunFeatures& features) {
  MeasuredRun run;
  run.name = "a run", run.origin = "an origin", run.features = features, run.measured = run.predicted = 1;
  return run;
}

}  // namespace

TEST_CASE("a lead is the share that the simple step is longer, and unsure if the interval is wider by more") {
  const std::vector<MeasuredRun> none;
  const Lead small = lead_over(step(10.5, 1.5), step(10, 2.7), pipeline(64), none);
  CHECK(small.ahead == Approx(0.05));
  CHECK(small.wider == Approx(0.8));
  CHECK(std::isinf(small.nearest));
  CHECK(small.is_unsure());
  CHECK_FALSE(lead_over(step(20, 1.5), step(10, 2.7), pipeline(64), none).is_unsure());    // ahead by 100 %
  CHECK_FALSE(lead_over(step(10.5, 1.5), step(10, 1.5), pipeline(64), none).is_unsure());  // as sure
}

TEST_CASE("a measured relative makes a lead count, a run that is far away does not") {
  const auto lead = [](double gpus) {
    return lead_over(step(10.5, 1.5), step(10, 2.7), pipeline(64), {measured(pipeline(gpus))});
  };
  CHECK(lead(16).nearest == Approx(2));
  CHECK_FALSE(lead(16).is_unsure());
  CHECK(lead(64 * 256).nearest == Approx(8));
  CHECK(lead(64 * 256).is_unsure());
}

TEST_CASE("a plan says what was passed over, and why") {
  Plan plan;
  Candidate simple = step(10.5, 1.5), fast = step(10, 2.7);
  simple.layout.shard = 64, fast.layout.shard = 16, fast.layout.pipeline = 4;
  CHECK(is_simple(simple.layout));
  CHECK_FALSE(is_simple(fast.layout));
  plan.simple = simple;
  plan.lead = lead_over(simple, fast, pipeline(64), {});
  plan.layout = fast.layout;
  CHECK_THAT(simple_sentence(PlanInputs{}, plan),
             Catch::Contains("1x64") && Catch::Contains("5.0 % more") && Catch::Contains("narrower by (80 %)"));
  plan.layout = simple.layout;
  plan.passed_over = fast;
  CHECK_THAT(simple_sentence(PlanInputs{}, plan),
             Catch::Contains("Passed over: 1x16 expert 1 pipeline 4, 10.0 s a step, which is "
                             "5.0 % ahead, while its interval is 80 % wider"));
}
