// A run from its folder: its course with the places where it was resumed (as figure 5 of DBRX's report has it,
// Databricks 2024), its speed, where the wall time went, its restarts and saves.
#pragma once
#include "planner/experiments/run_history.hpp"
#include "reports/model/report.hpp"

namespace wt {

Report run_report(const RunHistory& run);

}  // namespace wt
