// Output of `windtunnel demo`: a text after each stage, a report, and a paragraph at the end.
#pragma once
#include <filesystem>
#include <string>

#include "planner/experiments/demo.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// The result of a finished stage, in one or several lines.
std::string demo_stage(DemoStage stage, const DemoResult& result);
/// Whether the demo's own predictions and recoveries held: good, bad with what did not, or warn where times are not
/// judged.
Callout demo_verdict(const DemoResult& result);
/// The plan's report, with what the trainer proved on this machine. Its first line is no better than the verdict.
Report demo_report(const DemoResult& result);
/// The final paragraph; it names the file `report`.
std::string demo_summary(const DemoResult& result, const std::filesystem::path& report);

}  // namespace wt
