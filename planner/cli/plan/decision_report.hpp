// A decision between clusters and numbers of GPUs: a table and a chart for people, a document for machines.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "planner/plan/decision.hpp"
#include "reports/model/report.hpp"

namespace wt {

Table options_table(const Decision& decision);
/// Why options have no plan: "64 hgx-h100: nothing fits: ...".
std::vector<std::string> misfits(const Decision& decision);
/// Measurements that are worth taking before deciding; no rows where nothing would change the choice.
Table option_worth_table(const Decision& decision);
/// Schema "windtunnel.options/1".
nlohmann::json decision_json(const Decision& decision);
/// The sentence, the options, the Pareto front of days and GPU-hours, and the options as rows to move among.
/// `within_s`: the asked deadline.
Report decision_report(const Decision& decision, std::optional<double> within_s = {});

}  // namespace wt
