// The result of a health check as a report: the answer, unhealthy nodes, shared findings, and what was not checked.
#pragma once
#include "bench/health/judge.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// The payload has every finding with its confidence and the evidence of that.
Report health_report(const HealthVerdict& verdict, const JudgeOptions& options);

/// One node's measurements.
Table measured_table(const NodeObservation& node);

/// One row per payload: the median times of its pairs and rails.
Table links_table(const std::vector<LinkObservation>& links);

}  // namespace wt
