// Recovery policies on the same traces: what each comes to, and how far it is from another, trace by trace.
#pragma once
#include <cstdint>
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
};

struct PolicyOutcome {
  std::vector<double> goodputs, wall_s;    ///< of each trace
  std::int64_t finished = 0;               ///< runs that did not give up
  double failures = 0, without_spare = 0;  ///< mean per run
  double median_goodput() const;
  double p10_goodput() const;  ///< 90 % of traces do better (type 7)
  double cv() const;           ///< standard deviation of the goodput over its mean
  double median_s() const;
};

/// Each policy on traces 0 to runs - 1 of the tree and laws: the spares of the tree are entities of all traces, whether
/// or not a policy uses them. Throws Error{usage} as replay_trace and FaultTrace, and for fewer than 5 traces.
std::vector<PolicyOutcome> replay_policies(const EntityTree& tree, const std::vector<StrikeLaw>& laws,
                                           const std::vector<GivenStrike>& given,
                                           const std::vector<TracedPolicy>& policies, std::int64_t runs,
                                           std::uint64_t seed);

/// Mean of a - b over the same traces, and its 95 % interval (Student's t). Needs at least two.
struct PairedDifference {
  double mean = 0, low = 0, high = 0;
};
PairedDifference paired_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace wt
