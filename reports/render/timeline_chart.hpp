// The timeline of a step as a chart. Each rank and lane has one row per origin, predicted above measured.
#pragma once
#include <string>
#include <vector>

#include "reports/model/report.hpp"
#include "reports/render/chrome_trace.hpp"

namespace wt {

/// Rows are ordered by rank, lane, group; a lane that no group uses on a rank has none. Times are milliseconds from the
/// step's start. Throws Error{runtime} for several steps of one rank in one group: choose one first.
Chart timeline_chart(const std::string& title, const std::vector<TraceGroup>& groups);

}  // namespace wt
