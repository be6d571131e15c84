// Recovery policies on the same traces: what each comes to, and how far it is from another, trace by trace.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/months/replay_trace.hpp"

namespace wt {

/// One way to go on after a loss.
struct TracedPolicy {
  std::string name;
  RunScenario scenario;
  Continuation continuation;
  bool fails = true;  ///< false: of the trace only what is planned happens
  /// What is left of a run's goodput where it loses more than the trace says; empty = all.
  std::function<double(double goodput)> left = {};
};

/// What the traces of a comparison are made of. The spares of the tree are entities of all traces, whether or not a
/// policy uses them.
struct FaultTraces {
  EntityTree tree;
  std::vector<StrikeLaw> laws;
  std::vector<GivenStrike> given;
  std::uint64_t seed = 1;
  /// Throws Error{usage} as FaultTrace.
  FaultTrace trace(std::int64_t run) const { return {tree, laws, given, run_seed(seed, run)}; }
};
/// Runs of any scenario on these traces: the policy's own come to what replay_policies says. Throws as replay_trace.
NumberedRun traced_runs(FaultTraces faults, TracedPolicy policy);

struct PolicyOutcome {
  std::vector<double> goodputs, wall_s;    ///< of each trace
  std::int64_t finished = 0;               ///< runs that did not give up
  double failures = 0, without_spare = 0;  ///< mean per run
  double median_goodput() const;
  double p10_goodput() const;  ///< 90 % of traces do better (type 7)
  double cv() const;           ///< standard deviation of the goodput over its mean
  double median_s() const;
};

/// Each policy on traces 0 to runs - 1. Throws Error{usage} as replay_trace and FaultTrace, and for fewer than 5
/// traces.
std::vector<PolicyOutcome> replay_policies(const FaultTraces& faults, const std::vector<TracedPolicy>& policies,
                                           std::int64_t runs);

/// Mean of a - b over the same traces, and its 95 % interval (Student's t). Needs at least two.
struct PairedDifference {
  double mean = 0, low = 0, high = 0;
};
PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace wt
