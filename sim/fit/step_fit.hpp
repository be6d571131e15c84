// Step time of a training framework: what a StepWork takes when its stack runs it, and the constants of that model
// (sim/cost/stacks/step_constants.hpp), fitted to published steps.
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
  std::string group;  ///< rows of one group count together as a dozen at most
  double seconds = 0;
};

/// Throws Error{usage} without steps.
StepModel fit_steps(const std::vector<TimedStep>& steps);

}  // namespace wt
