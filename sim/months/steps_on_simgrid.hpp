// A run as work on SimGrid. Only for simulate_run.
#pragma once
#include "sim/cluster/failing_host.hpp"
#include "sim/months/uptime.hpp"

namespace wt::detail {

/// Steps, saves and stops run on the host, persists in its background. A step takes the time that the job's health
/// gives. `host` must outlive the result.
RunExecution steps_on(FailingHost& host);

}  // namespace wt::detail
