// windtunnel simulate: replays one step of a run on a cluster, op by op.
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "planner/cli/parts/collective_basis.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/study_words.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/simulate/simulate_report.hpp"
#include "reports/render/chrome_trace.hpp"
#include "reports/render/memory_snapshot.hpp"
#include "reports/render/write.hpp"
#include "sim/program/timeline_json.hpp"

namespace wt {
namespace {

struct Options {
  std::string run, cluster, machine, measured, stack, output;
  std::vector<std::string> profiles, routing;
  bool allow_assumed = false, json = false;
};

/// `snapshot`: memory_snapshot() of the rank of fullest_memory().
void write_folder(const SimulatedRun& step, const Report& report, const std::string& snapshot,
                  const std::filesystem::path& folder) {
  nlohmann::json timelines = nlohmann::json::array();
  for (const StepTimeline& t : step.replay.timelines) timelines.push_back(to_json(t));
  write_file_atomically(folder / "timeline.json", timelines.dump() + "\n");
  write_file_atomically(folder / "trace.json", chrome_trace({{"predicted", step.replay.timelines}}));
  write_file_atomically(folder / "memory.pickle", snapshot);
  for (const auto& file : write_report(report, folder, "report")) fmt::print(stderr, "wrote {}\n", file.string());
  for (const char* name : {"timeline.json", "trace.json", "memory.pickle"})
    fmt::print(stderr, "wrote {}\n", (folder / name).string());
}

void simulate(const Options& o) {
  SimulateQuestion question{
      .run = read_run(find_config("runs", o.run)),
      .run_file = o.run,
      .cluster = read_cluster(o.cluster),
      .sources = {.profiles = o.profiles, .machine = o.machine, .stack = o.stack, .allow_assumed = o.allow_assumed},
      .routing = o.routing,
      .measured = {}};
  if (!o.measured.empty()) question.measured = read_measured_steps(o.measured);
  if (!o.output.empty()) make_folder(o.output);
  const SimulatedRun step = simulated_run(question);
  const bool by_profiles = !step.cluster.shared_cores() && !(o.profiles.empty() && o.machine.empty());
  Report report =
      simulate_report(step, by_profiles ? collective_basis(*step.cost, step.cluster) : std::vector<std::string>{});
  report.provenance =
      provenance({{"run", o.run}, {"cluster", o.cluster}, {"times", step.basis}, {"routing", step.routing}});
  if (!o.output.empty())
    write_folder(step, report, memory_snapshot(step.fullest_program, step.fullest_replay), o.output);
  if (!o.json) std::erase_if(report.sections, [](const Section& s) { return s.id == "timeline"; });  // only in files
  put_report(report, o.json);
  if (report.status == Status::bad) set_status(static_cast<int>(Code::finding));
}

}  // namespace

void add_simulate(CLI::App& app) {
  const Command command(app, "simulate",
                        "Replay one step of a run on a cluster, op by op\n"
                        "Example: windtunnel simulate run.yaml --cluster hgx-h100 --stack torchtitan -o out/simulate");
  const auto o = command.runs(simulate);
  command.option("RUN", o->run, "Run file (YAML), or a preset of configs/runs").required();
  command.option("--cluster", o->cluster, "Cluster: a preset of configs/clusters, or a file").required();
  command.option("--machine", o->machine, "Machine model made by windtunnel calibrate, instead");
  command
      .option("--profile", o->profiles, "Profile measured on this machine (repeatable); published times say the rest")
      .one_a_mention();
  add_measured_word(command, o->measured);
  command.option("--stack", o->stack,
                 "Times from published measurements of the cluster's GPU, as this stack uses it (configs/stacks)");
  command
      .option("--routing", o->routing,
              "Which experts tokens go to: a recording (routing.csv), histograms (repeatable), or 'balanced'; default: "
              "trained, as models train that are balanced as this one")
      .one_a_mention();
  command.output(
      o->output, Output::folder,
      "Folder for report, timeline.json, trace.json (for Perfetto) and memory.pickle (for PyTorch's memory viewer)");
  command.flag("--allow-assumed", o->allow_assumed, "Estimate by a roofline what nobody measured, marked as assumed");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
