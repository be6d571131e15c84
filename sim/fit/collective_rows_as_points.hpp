// Rows of the published table of collectives as points to which constants are fitted.
#pragma once
#include <vector>

#include "sim/cost/collectives/collective_points.hpp"
#include "sim/measurements/collective_rows.hpp"

namespace wt {

CollectivePoint point_of(const CollectiveRow& row);
/// The points of a whole table. A row that is in it twice gives one point.
std::vector<CollectivePoint> points_of(const std::vector<CollectiveRow>& rows);

}  // namespace wt
