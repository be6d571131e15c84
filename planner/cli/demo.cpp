// windtunnel demo: the whole loop, stage by stage.
#include <chrono>

#include "configs/spec/support/quantity.hpp"
#include "planner/cli/command.hpp"
#include "planner/cli/words.hpp"
#include "planner/experiments/demo.hpp"

namespace wt {
namespace {

void demo(const DemoOptions& options) {
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  const auto begin = last;
  const DemoResult result = run_demo(options, [&](int number, const std::string& name, const std::string& text) {
    const auto now = Clock::now();
    fmt::print("[{}/9] {:<10} {:>8}  ", number, name,
               format_seconds(std::chrono::duration<double>(now - last).count()));
    std::string indented;
    for (const char c : text) indented += c == '\n' ? std::string("\n") + std::string(27, ' ') : std::string(1, c);
    fmt::print("{}\n", indented);
    std::fflush(stdout);
    last = now;
  });
  fmt::print("\n{}\n(all of it in {})\n", result.summary,
             format_seconds(std::chrono::duration<double>(Clock::now() - begin).count()));
  for (const std::string& line : broken_bars(result.comparisons)) fmt::print("Bar broken: {}\n", line);
  set_status(result.exit_status());
}

}  // namespace

void add_demo(CLI::App& app) {
  const Command command(app, "demo",
                        "Run the whole loop on this machine: train, measure, calibrate, predict, "
                        "compare, plan, recover, report\nExample: windtunnel demo");
  auto o = std::make_shared<DemoOptions>();
  command.option("-o,--output", o->folder, "Folder for everything the demo writes").shows_default();
  command.runs([o] { demo(*o); });
}

}  // namespace wt
