// Rows of published collectives as the points that constants are fitted to.
#pragma once
#include <vector>

#include "sim/cost/collectives/collective_points.hpp"
#include "sim/measurements/collective_rows.hpp"

namespace wt {

/// Of a table's row.
CollectivePoint point_of(const CollectiveRow& row);
/// Of a whole table, without rows that stand there twice.
std::vector<CollectivePoint> points_of(const std::vector<CollectiveRow>& rows);

}  // namespace wt
