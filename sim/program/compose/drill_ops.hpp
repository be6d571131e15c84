// Whether a fault scenario can happen in real training of a run, whose ops the step program names.
#pragma once
#include <string>
#include <vector>

namespace wt {

struct RunSpec;
struct Scenario;

/// Ids of the ops of one step of any rank, and of those that communicate.
struct StepOps {
  std::vector<std::string> ids, collectives;
};
StepOps step_ops(const RunSpec& run);

/// check_drill of configs/files/scenario.hpp with the ops of the run's own program. Throws Error{usage}.
void check_drill(const Scenario& scenario, const RunSpec& run);

}  // namespace wt
