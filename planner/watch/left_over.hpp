// What the planner says of a run that lost nodes: the study that lies beside plan.json, planned again on what is left.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "planner/watch/alternatives.hpp"

namespace wt {

/// Answers from study.yaml beside the plan: restart time from its failure preset (reschedule, restart) and the plan's
/// reload, repair time, remaining time, and the best layout on the most nodes left that the global batch divides among.
/// Each number of GPUs is planned once, which takes as long as windtunnel plan. `folder`/layout-GPUS.yaml is then
/// `folder`/run.yaml, the run as it is, in that layout; without one, the plan's run. What cannot be planned is UNKNOWN;
/// `said` is told why. Throws Error{usage} for a plan without its study.
AskPlanner planner_of(const std::filesystem::path& plan_json, const std::filesystem::path& folder,
                      const std::function<void(const std::string&)>& said);

}  // namespace wt
