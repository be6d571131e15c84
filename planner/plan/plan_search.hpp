// The problem of a plan's search: prices with the study's factors, and the objective.
#pragma once
#include <optional>

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
    if (inputs.staged_prices) problem.staged_cost = &staged_.emplace(*inputs.staged_prices, inputs.study.scale);
    problem.objective = &objective;
  }
  PlanSearch(const PlanSearch&) = delete;
  PlanSearch& operator=(const PlanSearch&) = delete;

 private:
  const ScaledCost scaled_;
  const RememberedCost cost_;
  std::optional<ScaledCost> staged_;

 public:
  SearchProblem problem;
  const RunObjective objective;
};

}  // namespace wt
