// Recovery policies compared: table and document for a plan's report and for windtunnel faults compare.
#pragma once
#include <nlohmann/json.hpp>

#include "planner/plan/plan.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// One row per policy: goodput over the traces, days, and the difference from a restart from storage. A policy with
/// unknown inputs is UNKNOWN, with these inputs.
Table policies_table(const PolicyTable& policies);
/// The input values at which policies with unknown inputs would pay off.
Table break_even_table(const PolicyTable& policies);
/// Break-even values over two inputs.
Table surface_table(const BreakEvenSurface& surface);
nlohmann::json policies_json(const PolicyTable& policies);
/// Bytes of one save and of all saves, and how many are kept.
nlohmann::json saves_json(const Plan& plan);
/// The report of windtunnel faults compare.
Report policies_report(const PlanInputs& inputs, const Plan& plan);

}  // namespace wt
