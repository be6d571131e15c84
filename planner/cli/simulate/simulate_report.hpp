// The report of `windtunnel simulate` on a replayed step.
#pragma once
#include <string>
#include <vector>

#include "planner/simulate/simulated_run.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// `collectives`: collective_basis(), for times that rest on profiles of GPUs.
Report simulate_report(const SimulatedRun& step, const std::vector<std::string>& collectives = {});

}  // namespace wt
