// windtunnel demo: all stages from data to report.
#include <array>
#include <chrono>

#include "configs/base/atomic_file.hpp"
#include "configs/base/quantity.hpp"
#include "planner/cli/demo/demo_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/plan/plan_report.hpp"
#include "planner/experiments/demo.hpp"
#include "reports/render/chrome_trace.hpp"
#include "reports/render/write.hpp"

namespace wt {
namespace {

using Clock = std::chrono::steady_clock;

/// Indexed by DemoStage, followed by the report.
constexpr std::array kStages = {"data", "train", "bench", "calibrate", "simulate", "plan", "drill", "gate", "report"};

void print_stage(std::size_t stage, double seconds, const std::string& text) {
  fmt::print("[{}/{}] {:<10} {:>8}  ", stage + 1, kStages.size(), kStages[stage], format_seconds(seconds));
  std::string indented;
  for (const char c : text) indented += c == '\n' ? std::string("\n") + std::string(27, ' ') : std::string(1, c);
  fmt::print("{}\n", indented);
  std::fflush(stdout);
}

/// Writes a stage's result to files.
void write_stage(DemoStage stage, const DemoResult& result, const std::filesystem::path& folder) {
  if (stage == DemoStage::simulate)
    write_file_atomically(folder / "trace.json", chrome_trace({{"predicted", result.shown().predicted_timelines},
                                                               {"measured", result.shown().measured_timelines}}));
  if (stage == DemoStage::plan)
    write_plan(result.inputs, result.plan, result.details, plan_json(result.inputs, result.plan), folder / "plan");
}

void demo(const DemoOptions& options) {
  const auto begin = Clock::now();
  auto last = begin;
  const auto lap_s = [&] {
    const auto before = std::exchange(last, Clock::now());
    return std::chrono::duration<double>(last - before).count();
  };
  const DemoResult result = run_demo(options, [&](DemoStage stage, const DemoResult& so_far) {
    write_stage(stage, so_far, options.folder);
    print_stage(static_cast<std::size_t>(stage), lap_s(), demo_stage(stage, so_far));
  });
  const std::filesystem::path report = write_report(demo_report(result), options.folder, "report").front();
  print_stage(kStages.size() - 1, lap_s(), report.string());
  fmt::print("\n{}\n(all of it in {})\n", demo_summary(result, report),
             format_seconds(std::chrono::duration<double>(Clock::now() - begin).count()));
  const DemoJudgement judgement = result.judgement();
  for (const std::string& line : judgement.disturbed) fmt::print("Disturbed: {}\n", line);
  if (!judgement.disturbed.empty()) fmt::print("Run it again on a quiet machine to have these judged, too.\n");
  for (const std::string& line : judgement.broken) fmt::print("Bar broken: {}\n", line);
  set_status(result.exit_status());
}

}  // namespace

void add_demo(CLI::App& app) {
  const Command command(app, "demo",
                        "Run the whole loop on this machine: train, measure, calibrate, predict, compare, plan, "
                        "recover, report\nExample: windtunnel demo");
  const auto o = command.runs(demo);
  command.output(o->folder, Output::folder, "Folder for everything the demo writes").shows_default();
}

}  // namespace wt
