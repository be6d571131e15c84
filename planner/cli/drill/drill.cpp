// windtunnel drill: real faults in real training, with bit-exact proof of recovery.
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/output_folder.hpp"
#include "configs/files/find.hpp"
#include "planner/cli/compare/proof_report.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/experiments/drill_prediction.hpp"
#include "planner/experiments/random_scenario.hpp"
#include "planner/experiments/system_text.hpp"
#include "sim/program/compose/drill_ops.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> scenarios;
  std::string output = "out/drill";
  std::string recovery;
  std::int64_t count = 10, first = 0, seed = 1;
  bool simulate = false, json = false;
};

/// Adds randomly drawn scenarios; their files are in the drill's folder.
void add_random(const Options& o, std::vector<DrillInput>& inputs) {
  if (o.count < 1 || o.seed < 0 || o.first < 0)
    throw_usage(
        "drill random: found --count {} --first {} --seed {}, needs a count of 1 or more, and a first and a seed of 0 "
        "or more",
        o.count, o.first, o.seed);
  struct Drawn {
    RunSpec run;
    StepOps ops;
  };
  std::vector<Drawn> runs;
  for (const char* name : {"tiny-moe", "tiny-moe-safe"}) {
    const RunSpec run = read_run(find_config("runs", name));
    runs.push_back({run, step_ops(run)});
  }
  for (std::int64_t i = o.first; i < o.first + o.count; ++i) {
    const auto& [run, ops] = runs[i % 4 == 3 ? 1 : 0];  // every fourth with local checkpoints and replica comparison
    Scenario scenario = random_scenario(run, {ops.ids, ops.collectives}, static_cast<std::uint64_t>(o.seed), i);
    scenario.file = std::filesystem::path(o.output) / (scenario.name + ".yaml");
    write_file_atomically(scenario.file, scenario_to_yaml(scenario));
    inputs.push_back({std::move(scenario), run, true});
  }
}

/// Simulates months with recovery times of an earlier drill: starts no rank and writes nothing.
void simulate(const Options& o) {
  std::vector<std::pair<std::string, SimulatedScenario>> simulated;
  for (const std::string& name : o.scenarios) {
    if (name == "random") throw_usage("drill --simulate: found random, needs scenarios by name or file");
    const DrillInput input = read_drill_input(name);
    simulated.emplace_back(
        input.scenario.name,
        simulate_drill(input, read_measured_recovery(o.recovery.empty() ? input.run.name : o.recovery)));
  }
  if (!o.json) return fmt::print("{}", shown_table(simulated_recovery_table(simulated)));
  nlohmann::json out = nlohmann::json::array();
  for (const auto& [name, scenario] : simulated)
    out.push_back({{"schema", "windtunnel.simulated-drill/1"},
                   {"name", name},
                   {"recovery_s", total_recovery_s(scenario)},
                   {"strikes", to_json(scenario)}});
  fmt::print("{}\n", out.dump(1));
}

void drill(const Options& o) {
  if (o.simulate) return simulate(o);
  if (!o.recovery.empty()) throw_usage("drill: found --recovery, which only --simulate uses");
  const auto said = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  std::vector<DrillInput> inputs;
  for (const std::string& name : o.scenarios)
    if (name != "random") inputs.push_back(read_drill_input(name));
  take_output_folder(o.output, "drill");  // must be first
  if (std::ranges::count(o.scenarios, "random") > 0) add_random(o, inputs);
  for (DrillInput& input : inputs) {
    RunSpec& run = input.run;
    // If the run's data is not on this machine, text files of the system replace it; tokens are written to the drill's
    // folder.
    if (!std::filesystem::exists(run.dataset.folder() / "index.json"))
      run.dataset.use_folder(system_text_folder(o.output, run.seq));
    if (const std::string text = ensure_system_text(run.dataset.folder(), run.seq); &input == &inputs.front())
      said(text);
  }
  const DrillResult result = run_drill(inputs, o.output, said);
  if (o.json) {
    fmt::print("{}\n", to_json(result).dump(1));
  } else {
    const bool drawn = std::ranges::any_of(inputs, [](const DrillInput& input) { return input.drawn; });
    if (drawn)
      fmt::print("{}", shown_table(drawn_table(inputs, result)));
    else
      fmt::print("{}\n{}", shown_table(drill_table(result)), shown_table(recovery_table(result)));
    if (!drawn && std::ranges::any_of(result.cases, [](const DrillCase& c) { return c.predicted.has_value(); }))
      fmt::print("\n{}\n{}\n", shown_table(predicted_recovery_table(result)),
                 shown_table(predicted_phases_table(result)));
    for (const DrillCase& c : result.cases)
      for (const std::string& difference : c.differences) fmt::print("{}: {}\n", c.name, difference);
    fmt::print("{}\n", drill_sentence(result));
  }
  if (!result.passed()) set_status(static_cast<int>(Code::finding));
}

}  // namespace

void add_drill(CLI::App& app) {
  const Command command(
      app, "drill",
      "Inject faults into a real run and prove that recovery is exact\nExample: windtunnel drill kill node-lost");
  const auto o = command.runs(drill);
  command.option("SCENARIO", o->scenarios, "Fault scenarios: files, presets of configs/faults, or `random`").required();
  command.output(o->output, Output::folder, "Folder for everything that the drill writes").shows_default();
  command.option("--count", o->count, "With `random`: how many scenarios are drawn").shows_default();
  command.option("--first", o->first, "With `random`: the number of the first one").shows_default();
  command.option("--seed", o->seed, "With `random`: of the series; the same seed draws the same ones").shows_default();
  command.flag("--simulate", o->simulate,
               "Start no ranks: what simulated months say of the scenarios, by times that a drill measured");
  command.option("--recovery", o->recovery,
                 "With --simulate: those times, a file that a drill wrote or a preset of configs/faults/recovery; else "
                 "the preset of the run's name");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
