// Findings against a node that need no comparison of times: errors of driver, memory and NICs, wrong results, missing
// devices, hardware throttling.
#pragma once
#include <vector>

#include "bench/health/judge.hpp"

namespace wt {

/// In the order of the fleet. Confidences are assumed: 0.99 where the driver's message names the fault, 0.9 where only
/// DCGM's last XID does (it stays after a repair), 0.5 where an application may be the cause as well.
std::vector<Finding> event_findings(const FleetObservation& fleet);

}  // namespace wt
