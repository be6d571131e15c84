// What a job could change: its own run with one setting changed, each simulated and compared with the run as it is.
#pragma once
#include <string>
#include <vector>

#include "planner/simulate/simulated_run.hpp"

namespace wt {

struct Change {
  std::string what;     ///< "microbatch 2, not 1"
  double step_s = 0;    ///< predicted
  double gain = 0;      ///< share of the run's predicted step that it saves
  double faster = 0;    ///< probability that it is faster at all
  double runs_out = 0;  ///< probability that its memory does not suffice
};

/// Changes that fit, the largest gain first, those that save nothing left out. Microbatch, recompute and degrees of
/// parallelism are tried, each doubled and halved; the batch and the GPUs stay. `spread_within`: of Standing, the error
/// of one prediction beside others of the same job; 0 = unknown, then a change may help or not.
std::vector<Change> best_changes(const SimulateQuestion& question, const SimulatedRun& as_is, double spread_within);

}  // namespace wt
