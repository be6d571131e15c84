// What is held against a node without comparing times: errors of driver, memory and NICs, wrong results, devices that
// are gone, clocks that hardware holds down.
#pragma once
#include <vector>

#include "bench/health/judge.hpp"

namespace wt {

/// In the order of the fleet. Confidences are assumed: 0.99 where the driver's message names the fault, 0.9 where only
/// DCGM's last XID does (it stays there after a repair), 0.5 where an application can be the cause as well.
std::vector<Finding> event_findings(const FleetObservation& fleet);

}  // namespace wt
