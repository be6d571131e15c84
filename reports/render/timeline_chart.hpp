// The timeline of a step as a chart: for every rank and lane one row an origin, predicted above measured.
#pragma once
#include <string>
#include <vector>

#include "reports/model/report.hpp"
#include "reports/render/chrome_trace.hpp"

namespace wt {

/// Rows in order of rank, lane, group; a lane that no group uses on a rank has none. Milliseconds from the step's
/// start. Several steps of one rank in one group are Error{runtime}: pick one first.
Chart timeline_chart(const std::string& title, const std::vector<TraceGroup>& groups);

}  // namespace wt
