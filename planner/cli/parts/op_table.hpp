// Where a simulated step's time goes, by class of ops.
#pragma once
#include "reports/model/report.hpp"
#include "sim/replay/replay.hpp"

namespace wt {

/// Of the last rank to end: count, busy and exposed time of each class of ops, the longest first.
Table op_table(const ReplayResult& result);

}  // namespace wt
