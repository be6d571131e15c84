// Checks a fault scenario against the ops of the run's step program.
#pragma once
#include <string>
#include <vector>

namespace wt {

struct RunSpec;
struct Scenario;

/// Ids of the ops in one step of any rank, and of the communicating ones among them.
struct StepOps {
  std::vector<std::string> ids, collectives;
};
StepOps step_ops(const RunSpec& run);

/// check_drill of configs/files/scenario.hpp with the ops of the run's own program. Throws Error{usage}.
void check_drill(const Scenario& scenario, const RunSpec& run);

}  // namespace wt
