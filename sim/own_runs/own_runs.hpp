// A user's own measured steps as evidence: simulates each of them, and finds what their times say of the stack's
// factors (sim/cost/stacks/own_steps.hpp).
#pragma once
#include <string>
#include <vector>

#include "configs/files/measured_steps.hpp"
#include "sim/cost/memory/stack_memory.hpp"
#include "sim/cost/op_times.hpp"
#include "sim/cost/stacks/own_steps.hpp"

namespace wt {

/// Seconds of the run's step by these times, with the routing that `simulate` takes where none is given.
double predicted_step_s(const RunSpec& run, const ClusterSpec& cluster, const TimeSources& sources);
StepSensitivity sensitivity(const RunSpec& run, const ClusterSpec& cluster, const TimeSources& sources);

struct OwnRun {
  std::string name;
  double measured_s = 0, before_s = 0, after_s = 0;  ///< predictions without and with all measured steps
};
struct OwnPeak {
  std::string name;
  MeasuredPeak measured;
  double before_bytes = 0, after_bytes = 0;  ///< predictions without and with all measured peaks
};
struct OwnRuns {
  OwnSteps steps;
  std::vector<OwnRun> runs;
  std::vector<OwnPeak> peaks;  ///< of those whose memory was measured
  StackMemory memory(const StackMemory& before) const;
};
/// `sources`: without factors. Throws Error{usage} where ranks share cores, whose times are measured anyway.
OwnRuns own_runs(const std::vector<MeasuredStep>& measured, const TimeSources& sources);

/// The upper end of the 80 % interval of the run's step over the step, and the step over the lower end. `sources` as of
/// sensitivity().
double interval_ratio(const OwnSteps& steps, const RunSpec& run, const ClusterSpec& cluster,
                      const TimeSources& sources);
/// The same for every kind of the cluster's nodes.
StepRatiosByKind ratios_of(const OwnSteps& steps, const RunSpec& run, const ClusterSpec& cluster,
                           const TimeSources& sources);

}  // namespace wt
