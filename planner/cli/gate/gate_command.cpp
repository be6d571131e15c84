// windtunnel gate: compares a new profile with a base. windtunnel gate selftest: how reliable the answers are.
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/gate/gate.hpp"
#include "bench/gate/selftest.hpp"
#include "configs/base/error.hpp"
#include "planner/cli/gate/gate_command.hpp"
#include "planner/cli/gate/gate_flags.hpp"
#include "planner/cli/gate/gate_report.hpp"
#include "planner/cli/gate/history_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "reports/render/render.hpp"

namespace wt {
namespace {

struct Options {
  std::string base, current, junit;
  GateFlags flags;
  bool all = false, json = false, markdown = false;
};

void compare_profiles(const Options& o) {
  if (o.base.empty() || o.current.empty())
    throw_usage("gate: found {} of 2 profiles; needs BASE and NEW, as in: windtunnel gate base.json new.json",
                o.base.empty() ? 0 : 1);
  const GoogleBenchmarkClock clock = o.flags.google_benchmark_clock();
  const GateResult result = compare(read_gate_input(gate_profiles(o.base), clock),
                                    read_gate_input(gate_profiles(o.current), clock), o.flags.options());
  if (!o.junit.empty()) put_document(gate_junit(result), o.junit);
  if (o.junit != "-")
    put_document(o.json       ? json_text(gate_json(result))
                 : o.markdown ? gate_markdown(result)
                              : gate_text(result, o.all, terminal_options(STDOUT_FILENO)),
                 "");
  set_status(result.exit_status());
}

void add_selftest(const Command& gate) {
  struct SelftestCommand {
    std::uint64_t seed = 1;
    bool history = false, json = false;
  };
  const Command command = gate.subcommand(
      "selftest",
      "How often the gate cries wolf and what it finds, on recorded H100 timings\nExample: windtunnel gate selftest");
  auto o = std::make_shared<SelftestCommand>();
  command.option("--seed", o->seed, "Seed of the draws").shows_default();
  command.flag("--history", o->history, "Of a history instead: precision and recall of change points");
  command.flag("--json", o->json, "Print one JSON document");
  command.runs([o] {
    if (o->history) {
      const HistorySelftest found =
          history_selftest(default_golden_series(), read_recorded_runs(default_recorded_runs()), {.seed = o->seed});
      return put_document(o->json ? json_text(history_selftest_json(found)) : history_selftest_text(found), "");
    }
    const SelftestResult result = selftest(read_recorded_runs(default_recorded_runs()), {.seed = o->seed});
    put_document(o->json ? json_text(selftest_json(result)) : selftest_text(result), "");
  });
}

}  // namespace

std::vector<std::filesystem::path> gate_profiles(const std::string& place) {
  if (!std::filesystem::is_directory(place)) return {place};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(place))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  if (files.empty()) throw_usage("{}: holds no .json file; needs a profile, or a folder of profiles", place);
  std::ranges::sort(files);
  return files;
}

void add_gate(CLI::App& app) {
  const Command command(app, "gate",
                        "Say whether a change made anything slower, and how sure that is\n"
                        "Example: windtunnel gate run --base main --new . --minutes 15");
  const auto o = command.runs(compare_profiles);
  command.option("BASE", o->base, "Profile or Google Benchmark JSON before the change, or a folder of them");
  command.option("NEW", o->current, "The same after the change");
  o->flags.add_to(command);
  command.flag("--all", o->all, "List benchmarks that stayed the same or are new, too");
  const Word json = command.flag("--json", o->json, "Print one JSON document");
  command.flag("--markdown", o->markdown, "Print Markdown for a pull request").excludes(json);
  command.option("--junit", o->junit, "Also write JUnit XML to this file ('-': only that, to standard output)");
  add_gate_run(command);
  add_selftest(command);
  add_gate_history(command);
}

}  // namespace wt
