// A plan as what it uses and is charged for.
#pragma once
#include "planner/money/cost.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

/// Shares of the critical rank's step. Where it does not compute, it waits: for collectives, a tensor group's among
/// them, for copies that hold its computation up, and for what happens once a step.
StepUse step_use(const Simulated& step);
/// Two checkpoints are kept, as the plan's run file says; the last one is taken out. Studies share
/// the error of their steps, and each has prices of its own.
CostInput cost_input(const PlanInputs& inputs, const Plan& plan);

}  // namespace wt
