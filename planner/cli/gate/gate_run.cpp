// windtunnel gate run: builds two revisions, measures both in blocks of random order, and ends when it is certain.
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "configs/base/error.hpp"
#include "planner/cli/gate/gate_blocks.hpp"
#include "planner/cli/gate/gate_command.hpp"
#include "planner/cli/gate/gate_flags.hpp"
#include "planner/cli/gate/gate_report.hpp"
#include "planner/cli/gate/gate_trees.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "reports/render/render.hpp"

namespace wt {
namespace {

// Defaults, for Windtunnel's own tree.
constexpr const char* kBuild = "WINDTUNNEL_TRAINER=1 ./windtunnel --help >/dev/null";
constexpr const char* kMeasure = "build/bin/windtunnel bench kernels --quick -o {output}";

struct RunOptions {
  std::string base, current = ".", build = kBuild, command = kMeasure, output;
  double minutes = 15;
  std::optional<std::int64_t> seed;
  GateFlags flags;
  bool all = false, json = false;
};

/// The command line that measures both again.
std::string command_line(const RunOptions& o, const GateTree& base, const GateTree& current, std::int64_t seed) {
  const bool named = o.current != "." || current.is_clean;
  std::string line = fmt::format("windtunnel gate run --base {} --new {}", base.commit.substr(0, 12),
                                 named ? current.commit.substr(0, 12) : ".");
  if (o.build != kBuild) line += " --build " + shell_word(o.build);
  if (o.command != kMeasure) line += " --command " + shell_word(o.command);
  return line + o.flags.words() + fmt::format(" --minutes {:g} --seed {}", o.minutes, seed);
}

void build(const GateTree& tree, const RunOptions& o, const std::filesystem::path& log) {
  fmt::print(stderr, "gate run: building {}{}\n", tree.commit.substr(0, 12), tree.is_clean ? "" : " with changes");
  std::string failure;
  constexpr double kDay_s = 86400;
  if (!run_in_tree(tree, o.build, kDay_s, log, failure))
    throw_runtime("gate run: {} could not be built in {}: {}", tree.commit.substr(0, 12), tree.folder.string(),
                  failure);
}

void run(const RunOptions& o) {
  const GateOptions options = o.flags.options();
  const GoogleBenchmarkClock clock = o.flags.google_benchmark_clock();
  std::filesystem::path folder;
  if (!o.output.empty()) folder = make_folder(o.output);
  GateTrees trees;
  const GateTree base = trees.tree(o.base), current = trees.tree(o.current);
  build(base, o, trees.log());
  build(current, o, trees.log());
  // A new seed each time: orders must be random for the test's probabilities to hold.
  const std::int64_t seed = o.seed ? *o.seed : std::random_device{}();
  GateBlocks blocks(base, current, o.command, clock, trees.log(), static_cast<std::uint64_t>(seed));
  GateResult result = blocks.measure(60 * o.minutes, options);
  result.command = command_line(o, base, current, seed);
  if (!folder.empty()) {
    put_document(json_text(gate_json(result)), (folder / "gate.json").string());
    put_document(gate_markdown(result), (folder / "gate.md").string());
    put_document(gate_junit(result), (folder / "gate.xml").string());
    put_document(gate_comment(result), (folder / "comment.md").string());
  }
  put_document(o.json ? json_text(gate_json(result)) : gate_text(result, o.all, terminal_options(STDOUT_FILENO)), "");
  set_status(result.exit_status());
}

}  // namespace

void add_gate_run(const Command& gate) {
  const Command command =
      gate.subcommand("run",
                      "Build two revisions, measure them in turns until it is certain, and compare\n"
                      "Example: windtunnel gate run --base main --new . --minutes 15 -o gate");
  const auto o = command.runs(run);
  command.option("--base", o->base, "Revision before the change").required();
  command.option("--new", o->current, "Revision after it; '.': the working tree").shows_default();
  command.option("--build", o->build, "Command of bash that builds a tree, run in it").shows_default();
  command
      .option("--command", o->command,
              "Command that measures a tree: prints a profile or JSON of Google Benchmark or nvbench, or writes it to "
              "{output}")
      .shows_default();
  command.option("--minutes", o->minutes, "Time to measure in").between(0.01, 10000.0).shows_default();
  command.option("--seed", o->seed, "Of the order within blocks (default: drawn, and shown with the result)");
  command.output(o->output, Output::folder,
                 "Folder for gate.json, gate.md, gate.xml (JUnit) and comment.md, empty without a finding");
  o->flags.add_to(command);
  command.flag("--all", o->all, "List benchmarks that stayed the same or are new, too");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
