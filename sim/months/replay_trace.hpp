// A training run on a given fault trace, under one recovery policy. Uptimes are modelled as in simulate_run. Faults
// come from the trace by wall clock, so that all policies meet the same events.
//
// Nodes fail at any time: in training, on standby, and while the job is down. A failed node is in repair from then on.
// A failure of one of the job's nodes while the job is down is detected and recovered from in the same way.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/months/fault_trace.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

/// How a run continues without some of its nodes. By default it stops, takes standby nodes, and waits for repairs if
/// there are too few.
struct Continuation {
  /// >= 0: standby nodes are hot, and taking over needs this in place of reschedule and restart.
  double activate_s = -1;
  std::int64_t units = 1;                 ///< equal parts of the nodes (replicas) by which the job can shrink
  std::int64_t min_units = 1;             ///< with fewer units the job stops and waits; = units: the job never shrinks
  std::vector<double> step_factor{1, 1};  ///< relative step time with 0 to `units` units; the last is 1
  /// With tolerance: below `min_units` all nodes are replaced at once and restart from a checkpoint.
  bool restart_all = false;
};

/// One run on the trace. The trace replaces the scenario's failures, planned stops, maintenance and slow nodes. With
/// scenario.tolerance the loss of a unit stops the others only for the stall. Silent errors are drawn in step time, by
/// the trace's seed. Throws Error{usage} as simulate_run, for more spares than the trace has, and for units that do not
/// divide the nodes.
RunOutcome replay_trace(const RunScenario& scenario, const Continuation& policy, FaultTrace& trace);

}  // namespace wt
