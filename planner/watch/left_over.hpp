// The planner's figures for a run that lost nodes: the study next to plan.json, planned again on the remaining nodes.
#pragma once
#include <filesystem>
#include <functional>
#include <string>

#include "planner/watch/alternatives.hpp"

namespace wt {

/// Answers from study.yaml next to the plan: the restart time (reschedule and restart of its failure preset, reload of
/// the plan), the repair time, the remaining time, and the best layout on as many of the remaining nodes as divide the
/// global batch. Plans once for each number of GPUs, which takes as long as windtunnel plan. Writes that layout as
/// `folder`/layout-GPUS.yaml: `folder`/run.yaml in the new layout, or without that file the plan's run. Figures that
/// cannot be planned are UNKNOWN, and `said` gets the reason. Throws Error{usage} for a plan without its study.
AskPlanner planner_of(const std::filesystem::path& plan_json, const std::filesystem::path& folder,
                      const std::function<void(const std::string&)>& said);

}  // namespace wt
