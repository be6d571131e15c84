// Plans a study again for the GPUs that remain after failures.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"

namespace wt {

/// The best layout on fewer GPUs, as a run, and its step time. The run's cadence is based on one simulated run.
struct RunOnFewer {
  RunSpec run;
  double step_s = 0;
};
/// `study`: the text of a study file; `origin`: its name. Throws Error{finding} if nothing fits.
RunOnFewer plan_on_fewer(const std::string& study, const std::string& origin, std::int64_t gpus, bool allow_assumed);

/// The best layouts on the next `sizes` smaller numbers of GPUs that divide the global batch, the most first. The
/// trainer uses these layouts when it shrinks. Numbers that cannot be planned are skipped, and `said` gets the reason.
std::vector<SmallerLayout> smaller_layouts(const StudySpec& study, std::int64_t sizes, bool allow_assumed,
                                           const std::function<void(const std::string&)>& said);

}  // namespace wt
