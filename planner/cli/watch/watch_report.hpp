// Decisions of a watch, and a run compared with its plan, as tables.
#pragma once
#include "planner/watch/plan_baseline.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// `decision`: windtunnel.decision/1. "02:13:07  slow steps: save: slow hardware: steps take ... (ok, 2.1 s)".
std::string decision_line(const nlohmann::json& decision);

/// Predicted and measured times, and the causes of the difference.
std::vector<Table> drift_tables(const PlanDrift& drift);

}  // namespace wt
