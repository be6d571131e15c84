// Recovery policies on the same traces: the outcome of each, and paired differences between them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/months/replay_trace.hpp"

namespace wt {

/// How a run continues after a failure.
struct TracedPolicy {
  std::string name;
  RunScenario scenario;
  Continuation continuation;
  bool with_failures = true;  ///< false: only the planned stops of the trace happen
  /// Goodput after further losses that the trace does not model, as a function of the goodput with the trace. Empty =
  /// no further loss.
  std::function<double(double goodput)> after_further_losses = {};
};

/// The input of a comparison. The tree's spares are entities of all traces, whether or not a policy uses them.
struct FaultTraces {
  EntityTree tree;
  std::vector<FaultLaw> laws;
  std::vector<ScheduledFault> scheduled;
  std::uint64_t seed = 1;
  /// Throws Error{usage} as FaultTrace.
  FaultTrace trace(std::int64_t run) const { return {tree, laws, scheduled, run_seed(seed, run)}; }
};
/// Runs of any scenario on these traces. For the policy's own scenario, they equal those of replay_policies. Throws as
/// replay_trace.
NumberedRun traced_runs(FaultTraces faults, TracedPolicy policy);

struct PolicyOutcome {
  std::vector<double> goodputs, wall_s;    ///< one for each trace
  std::int64_t finished = 0;               ///< runs that did not give up
  double failures = 0, without_spare = 0;  ///< mean per run
  double median_goodput() const;
  double p10_goodput() const;  ///< 90 % of traces do better (type 7 quantile)
  double cv() const;           ///< standard deviation of the goodput over its mean
  double median_s() const;
};

/// Replays each policy on traces 0 to runs - 1. Throws Error{usage} as replay_trace and FaultTrace, and for fewer than
/// 5 traces.
std::vector<PolicyOutcome> replay_policies(const FaultTraces& faults, const std::vector<TracedPolicy>& policies,
                                           std::int64_t runs);

/// Mean of a - b over the same traces, with its 95 % interval (Student's t). Needs at least two traces.
struct PairedDifference {
  double mean = 0, low = 0, high = 0;
};
PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace wt
