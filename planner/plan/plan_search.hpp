// The problem of a plan's search: prices with the study's factors, and the objective.
#pragma once
#include "planner/plan/run_objective.hpp"
#include "planner/search/scaled_cost.hpp"
#include "sim/cost/ops/remembered_cost.hpp"

namespace wt {

class PlanSearch {
 public:
  /// `inputs` must outlive it. Throws as RunObjective.
  explicit PlanSearch(const PlanInputs& inputs)
      : scaled_(*inputs.prices, inputs.study.scale),
        cost_(scaled_),
        problem(search_problem(inputs, cost_)),
        objective(inputs, problem) {
    problem.objective = &objective;
  }
  PlanSearch(const PlanSearch&) = delete;
  PlanSearch& operator=(const PlanSearch&) = delete;

 private:
  const ScaledCost scaled_;
  const RememberedCost cost_;

 public:
  SearchProblem problem;
  const RunObjective objective;
};

}  // namespace wt
