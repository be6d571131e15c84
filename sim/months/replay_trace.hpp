// A training run on a given trace of faults: what it comes to under one recovery policy. The uptimes are those of
// simulate_run; what strikes is read from the trace by wall clock, so that policies meet the same events.
//
// Nodes fail whether they train, stand by or wait, and whether the job runs. A node that is struck is in repair from
// then on. What strikes a node of the job while it is down is found and replaced likewise, from the strike on.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/months/fault_trace.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

/// How a run goes on without some of its nodes. By default it stops, takes nodes that stand by, and waits for repairs
/// where too few do.
struct Continuation {
  double activate_s = -1;  ///< >= 0: nodes that stand by are hot; this in place of reschedule and restart
  std::int64_t units = 1;  ///< equal parts of the nodes (replicas) in which the job can shrink
  std::int64_t least = 1;  ///< it stops and waits below so many; = units: it never shrinks
  std::vector<double> step_factor{1, 1};  ///< of a step with so many units there, at index 0 to units; the last is 1
  bool restarts = false;  ///< tolerant: with fewer than `least` all nodes are there again, and start from a checkpoint
};

/// One run on the trace. Of the scenario the laws of failures, planned stops, maintenance and slow nodes do not count:
/// those of the trace do. With scenario.tolerance the loss of a unit stops the others for the stall alone. Silent
/// errors are drawn in the time of steps, by the trace's seed. Throws Error{usage} as simulate_run, for spares that the
/// trace has not or units that do not divide the nodes.
RunOutcome replay_trace(const RunScenario& scenario, const Continuation& policy, FaultTrace& trace);

}  // namespace wt
