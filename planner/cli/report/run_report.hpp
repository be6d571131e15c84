// A run from its folder: its course with the places where it was resumed (as figure 5 of DBRX's report has it,
// Databricks 2024), its speed, where the wall time went, its restarts and saves.
#pragma once
#include "reports/model/report.hpp"
#include "trainer/run_folder/run_history.hpp"

namespace wt {

Report run_report(const RunHistory& run);

}  // namespace wt
