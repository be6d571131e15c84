// A checked scenario in whole nanoseconds. Only for simulate_run and replay_trace.
#pragma once
#include "sim/months/simulate_run.hpp"

namespace wt::detail {

/// Throws as simulate_run.
void check_scenario(const RunScenario& scenario);
RunClock run_clock(const RunScenario& scenario);
/// The run's time without failures, slow nodes and stops.
std::int64_t undisturbed_ns(const RunClock& clock);

}  // namespace wt::detail
