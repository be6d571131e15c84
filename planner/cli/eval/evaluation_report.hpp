// What a model scored, as a report of its own and as a section of a run's report.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/evaluation.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Tasks with their metrics; categories and averages where a gauntlet was asked for. Its id is "evaluation".
Section evaluation_section(const Evaluation& evaluation);

/// The payload is evaluation_json().
Report evaluation_report(const Evaluation& evaluation);

}  // namespace wt
