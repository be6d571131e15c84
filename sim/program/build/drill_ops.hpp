// Whether a fault scenario can happen in real training of a run, whose ops the step program names.
#pragma once
#include "configs/spec/run.hpp"
#include "configs/spec/scenario.hpp"

namespace wt {

/// check_drill of configs/spec/scenario.hpp with the ops of the run's own program. Throws Error{usage}.
void check_drill(const Scenario& scenario, const RunSpec& run);

}  // namespace wt
