// A run's report from its folder: loss with the steps at which it resumed (as figure 5 of DBRX's report, Databricks
// 2024), speed, wall time by cause, restarts and saves.
#pragma once
#include "reports/model/report.hpp"
#include "trainer/run_folder/run_history.hpp"

namespace wt {

Report run_report(const RunHistory& run);

}  // namespace wt
