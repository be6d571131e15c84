// Which work items a kernel suite measures: what the run's step program executes, in its own layout and in every other
// layout of its model over up to four ranks, and a ladder of products around it so that fits reach other model widths.
#pragma once
#include <vector>

#include "configs/spec/run.hpp"
#include "sim/program/work_item.hpp"

namespace wt {

/// Each (kernel, pass, precision, dims, rows) once; rows.fixed is the row count and rows.per_row 0. Rows that routing
/// decides are measured at a quarter, half, once and twice the balanced load; other items at their rows and, unless
/// `quick`, at half and double.
std::vector<WorkItem> kernel_cases(const RunSpec& run, bool quick);

}  // namespace wt
