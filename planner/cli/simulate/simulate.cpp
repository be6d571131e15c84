// windtunnel simulate: replays one step of a run on a cluster, op by op.
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "configs/files/study.hpp"
#include "planner/cli/parts/collective_basis.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/simulate/simulate_report.hpp"
#include "reports/render/chrome_trace.hpp"
#include "reports/render/memory_snapshot.hpp"
#include "reports/render/write.hpp"
#include "sim/cost/op_times.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/cost/published_constants.hpp"
#include "sim/cost/stacks/step_family.hpp"
#include "sim/program/memory/choose_microbatch.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/program/timeline_json.hpp"
#include "sim/replay/routed_memory.hpp"

namespace wt {
namespace {

struct Options {
  std::string run, cluster, machine, stack, output;
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
  SimulatedRun step;
  const RunSpec file = read_run(find_config("runs", o.run));
  step.cluster = read_cluster(o.cluster);
  step.run = choose_microbatch(file, kForTensors * step.cluster.usable_memory_bytes, o.run);
  if (!o.output.empty()) make_folder(o.output);
  const std::vector<std::string> loads = o.routing.empty() ? routing_for_model(step.run.model) : o.routing;
  auto [routing, evidence] = read_routing(loads, step.run.model, step.run.tokens(), step.run.layout.expert);
  step.routing_evidence = evidence;
  step.routing = routing->description();
  const MachineTimes times = make_times({.profiles = o.profiles,
                                         .machine = o.machine,
                                         .stack = o.stack,
                                         .allow_assumed = o.allow_assumed,
                                         .compute = step.run.precision,
                                         .precisions = step.run.precisions},
                                        step.cluster, step.run.layout.world());
  if (!step.cluster.shared_cores() && !(o.profiles.empty() && o.machine.empty()))
    step.collectives = collective_basis(*times.cost, step.cluster);
  if (!step.cluster.shared_cores()) {
    step.memory = PublishedConstants::get().memory.of(times.stack, step.run.layout.world());
    step.features = features_of(step.run, step.cluster, times.stack);
  }
  const StepRatiosByKind off_by = times.intervals.of(step_family(step.run.model, step.run.layout));
  const RememberedCost cost(*times.cost);
  const auto simulated = [&](const RoutingSource& loads_of) {
    return simulated_step(step_question(step.run, step.cluster, times.stack, loads_of), cost,
                          {.replay = {.health = {}, .off_by = off_by}});
  };
  static_cast<SimulatedStep&>(step) = simulated(*routing);
  if (o.routing.empty() && step.run.model.experts > 0) {
    const NamedRouting even = read_routing({"balanced"}, step.run.model, step.run.tokens(), step.run.layout.expert);
    step.balanced_s = simulated(*even.source).replay.step_s;
  }

  const std::int64_t fullest = fullest_memory(step).rank;
  const Program& program = step.programs.programs.at(
      static_cast<std::size_t>(step.programs.class_of_rank.at(static_cast<std::size_t>(fullest))));
  const MemoryReplay memory = replay_memory(program, rows_of_rank(program, step.run.layout, *routing, fullest), true);
  step.moments = memory_moments(program, memory);

  Report report = simulate_report(step);
  report.provenance =
      provenance({{"run", o.run}, {"cluster", o.cluster}, {"times", times.basis}, {"routing", step.routing}});
  if (!o.output.empty()) write_folder(step, report, memory_snapshot(program, memory), o.output);
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
  command.option("--stack", o->stack,
                 "Times from published measurements of the cluster's GPU, as this stack uses it (configs/stacks)");
  command
      .option("--routing", o->routing,
              "Which experts tokens go to: a recording (routing.csv), histograms (repeatable), or 'balanced'; default: "
              "trained, as models train that are balanced as this one")
      .one_a_mention();
  command.option(
      "-o,--output", o->output,
      "Folder for report, timeline.json, trace.json (for Perfetto) and memory.pickle (for PyTorch's memory viewer)");
  command.flag("--allow-assumed", o->allow_assumed, "Estimate by a roofline what nobody measured, marked as assumed");
  command.flag("--json", o->json, "Print one JSON document");
}

}  // namespace wt
