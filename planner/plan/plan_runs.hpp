// The runs behind a plan's finish date: those of the chosen way to recover.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// The study's number of runs of the chosen policy. Where nodes fail at a rate, each as any other, and the job restarts
/// on spares, they are drawn by the running time of the job (simulate_run), which takes less time and comes to the
/// same. Else they meet the traces of the comparison, and further ones; fewer than the study's number, but as many as
/// these, where they would have more than 100,000 failures. Throws Error{usage} as simulate_runs and traced_runs.
PlanRuns simulate_plan(const PlanInputs& inputs, const PolicyTable& policies, std::int64_t steps);

}  // namespace wt
