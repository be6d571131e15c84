// In which state a GPU spends a replayed step, for its power.
#pragma once
#include <vector>

#include "sim/cost/power/node_power.hpp"
#include "sim/replay/replay.hpp"

namespace wt {

/// Shares of the critical rank's step from ReplayResult::totals. When it does not compute, it waits: for collectives (a
/// tensor group's included), for copies that delay its computation, and for work done once a step.
StepShares step_shares(const std::vector<OpClassTotal>& totals, double step_s);

}  // namespace wt
