// The step model: the seconds of a StepWork under a stack. Fits its constants (sim/cost/stacks/step_constants.hpp) to
// published steps.
//
//   layers = computation + blocking collectives, as the host issues them (host_time.hpp), overlapped with the gathers
//            of weights (overlap.hpp)
//   step   = microbatches of the fullest pipeline stage + bubble + what happens once a step
#pragma once
#include <string>
#include <vector>

#include "sim/cost/stacks/step_constants.hpp"
#include "sim/fit/step_work.hpp"

namespace wt {

double step_seconds(const StepWork& work, const StepTraits& traits, const StepConstants& constants);

struct TimedStep {
  const StepWork* work = nullptr;
  StepTraits traits;
  std::string group;  ///< all rows of a group together weigh as much as twelve rows
  double seconds = 0;
};

/// Throws Error{usage} if there are no steps.
StepModel fit_steps(const std::vector<TimedStep>& steps);

}  // namespace wt
