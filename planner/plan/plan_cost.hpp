// A plan's use of the cluster, as the input of its cost.
#pragma once
#include "planner/money/cost.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

/// With the shares of step_shares().
StepUse step_use(const Simulated& step);
/// Two checkpoints are kept, as in the plan's run file, and the last is moved out of the cluster. Studies with the same
/// seed draw the same step errors, but each study draws its own prices.
CostInput cost_input(const PlanInputs& inputs, const Plan& plan);

}  // namespace wt
