// Recovery policies side by side: the table and the document, in a plan's report and of windtunnel faults compare.
#pragma once
#include <nlohmann/json.hpp>

#include "planner/plan/plan.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// A row a policy: goodput over the traces, days, and the difference from a restart from storage; UNKNOWN with the
/// missing inputs where they are not all known.
Table policies_table(const PolicyTable& policies);
/// What unknown policies would need to pay.
Table break_even_table(const PolicyTable& policies);
/// A surface of break-evens over two inputs.
Table surface_table(const BreakEvenSurface& surface);
nlohmann::json policies_json(const PolicyTable& policies);
/// Bytes of a save and of all of them, and how many are kept.
nlohmann::json saves_json(const Plan& plan);
/// The answer of windtunnel faults compare.
Report policies_report(const PlanInputs& inputs, const Plan& plan);

}  // namespace wt
