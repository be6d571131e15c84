// A run as work on SimGrid. Only for simulate_run.
#pragma once
#include "sim/cluster/failing_host.hpp"
#include "sim/months/uptime.hpp"

namespace wt::detail {

/// Steps, saves and stops take their time on the host, persists beside them; each step as long as the memoised step
/// time of the job's health says. `host` must outlive it.
RunExecution steps_on(FailingHost& host);

}  // namespace wt::detail
