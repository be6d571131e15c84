// What a health check found, as a report: the answer, the nodes that are not healthy, what is nobody's fault, and what
// was not looked at.
#pragma once
#include "bench/health/judge.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// The payload has every finding with its confidence and where that comes from.
Report health_report(const HealthVerdict& verdict, const JudgeOptions& options);

/// What one node measured, beside its verdict.
Table measured_table(const NodeObservation& node);

/// A row a payload: the median times of its pairs and rails.
Table links_table(const std::vector<LinkObservation>& links);

}  // namespace wt
