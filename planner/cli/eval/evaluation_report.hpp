// A model's scores as a report, and as a section of a run's report.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "planner/evaluate/evaluation.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Tasks with their metrics; with a gauntlet also categories and averages. The section's id is "evaluation".
Section evaluation_section(const Evaluation& evaluation);

/// The payload is evaluation_json().
Report evaluation_report(const Evaluation& evaluation);

}  // namespace wt
