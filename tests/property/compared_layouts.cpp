// A plan compares a handful of layouts where times are off. Searches of the whole space at those times say what it
// misses.
#include <algorithm>
#include <catch2/catch.hpp>

#include "planner/plan/plan.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/cost/stacks/step_family.hpp"

using namespace wt;

TEST_CASE("where DBRX's times are off, the best of the compared layouts is within a tie of the best of the space") {
  const PlanInputs inputs = read_plan_inputs(read_study("dbrx-3072-h100"), false);
  const Plan plan = make_plan(inputs);
  // The study's space has no tensor groups and no stages: all its layouts are of one family.
  const StepRatiosByKind off_by = inputs.intervals.of(step_family(inputs.study.model, plan.layout));
  for (const VariedClass& varied : plan.robust.classes) {
    if (varied.times.single() && !varied.times.slowdown) continue;  // half a minute is enough
    for (const IntervalEnd end : {IntervalEnd::low, IntervalEnd::high}) {
      const ClassAtEnd moved(*inputs.times, varied.times, end, off_by);
      const RememberedCost cost(moved);
      SearchProblem problem = search_problem(inputs, cost);
      for (const auto& [degree, study] : plan.placements)
        if (const Placement& p = study.candidates[study.chosen].plan.placement; !p.empty())
          problem.placements[degree] = p;
      const double best_s = search_layouts(problem).certificate.incumbent;
      const std::size_t scenario = varied.scenarios[end == IntervalEnd::low ? 0 : 1];
      const auto& steps_s = plan.robust.table.steps_s[scenario];
      INFO(plan.robust.table.scenarios[scenario]);
      CHECK(*std::ranges::min_element(steps_s) >= best_s * (1 - 1e-9));
      CHECK(*std::ranges::min_element(steps_s) <= best_s * (1 + problem.space.tie));
    }
  }
}
