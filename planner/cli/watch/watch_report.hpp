// Decisions of a watch, and a run compared with its plan, as tables.
#pragma once
#include "planner/watch/plan_baseline.hpp"
#include "planner/watch/signals.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// `decision`: windtunnel.decision/1. "02:13:07  slow steps: save: slow hardware: steps take ... (ok, 2.1 s)".
std::string decision_line(const nlohmann::json& decision);

/// Signals that hold after `last_step`: what, since which step, what it is compared with, and now. Those that began in
/// the last `steps` steps are listed, older ones counted.
Table standing_table(const std::vector<WatchSignal>& standing, std::int64_t last_step, std::int64_t steps);
/// windtunnel.standing/1, with the same signals.
nlohmann::json standing_json(const std::string& run, const std::vector<WatchSignal>& standing, std::int64_t last_step,
                             std::int64_t steps);

/// Predicted and measured times, and the causes of the difference.
std::vector<Table> drift_tables(const PlanDrift& drift);

}  // namespace wt
