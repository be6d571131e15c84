// A study planned again on what is left when nodes are lost.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"

namespace wt {

/// A study's best layout on so many GPUs, as its run, whose cadence rests on one simulated run, and its step.
struct RunOnFewer {
  RunSpec run;
  double step_s = 0;
};
/// `study` is the text of a study file, `origin` stands for its name. Throws Error{finding} when nothing fits.
RunOnFewer plan_on_fewer(const std::string& study, const std::string& origin, std::int64_t gpus, bool allow_assumed);

/// The best layouts on the next `sizes` smaller numbers of GPUs among which the global batch divides, the most first:
/// what the trainer goes on with when it shrinks. Those that cannot be planned are left out; `said` is told why.
std::vector<SmallerLayout> smaller_layouts(const StudySpec& study, std::int64_t sizes, bool allow_assumed,
                                           const std::function<void(const std::string&)>& said);

}  // namespace wt
