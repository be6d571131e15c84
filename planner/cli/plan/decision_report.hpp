// Several clusters and numbers of GPUs against each other: a table and a chart for people, a document for machines.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "planner/plan/decision.hpp"
#include "reports/model/report.hpp"

namespace wt {

Table options_table(const Decision& decision);
/// What is worth measuring before one is taken; without rows where nothing would change the choice.
Table option_worth_table(const Decision& decision);
/// Schema "windtunnel.decision/1".
nlohmann::json decision_json(const Decision& decision);
/// The sentence, the options, and the front of days against GPU-hours.
Report decision_report(const Decision& decision);

}  // namespace wt
