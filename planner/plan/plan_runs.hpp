// The simulated runs behind a plan's finish date, with the chosen recovery policy.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// The study's number of runs with the chosen policy. If all nodes fail at the same rate and the job restarts on
/// spares, failures follow the running time of the job (simulate_run), which is faster and gives the same result.
/// Otherwise runs use the traces of the comparison and further traces. If these have more than 100,000 failures in
/// total, there are fewer runs, but at least those of the comparison. Throws Error{usage} as simulate_runs and
/// traced_runs do.
PlanRuns simulate_plan(const PlanInputs& inputs, const PolicyTable& policies, std::int64_t steps);

}  // namespace wt
