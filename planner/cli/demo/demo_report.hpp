// What `windtunnel demo` says: as each stage ends, in its report, and in one paragraph at the end.
#pragma once
#include <filesystem>
#include <string>

#include "planner/experiments/demo.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// What a stage that has ended gave; a line, or several.
std::string demo_stage(DemoStage stage, const DemoResult& result);
/// The plan's report, with what the trainer proved on this machine.
Report demo_report(const DemoResult& result);
/// Names `report`, the file.
std::string demo_summary(const DemoResult& result, const std::filesystem::path& report);

}  // namespace wt
