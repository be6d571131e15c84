// windtunnel train --rehearse: chooses the part of the plan that fits this machine, lets windtunnel-train run one rank
// of it, and compares the measurements with the predictions and the plan.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/output_place.hpp"
#include "configs/base/scratch_folder.hpp"
#include "configs/files/find.hpp"
#include "configs/files/study.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/rehearse/rehearsal_report.hpp"
#include "planner/experiments/comparison.hpp"
#include "planner/experiments/reduced_run.hpp"
#include "reports/render/write.hpp"
#include "sim/cost/op_times.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "trainer/process/trainer_process.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string plan, machine, output;
  bool json = false;
};

fs::path run_file(const std::string& name) {
  const fs::path file = find_config("runs", name);
  if (file.extension() == ".json")
    throw_usage(
        "{}: found a JSON document, a rehearsal needs a run file; give the plan.yaml that windtunnel plan wrote beside "
        "it",
        file.string());
  return file;
}

/// Times of a single rank as measured on this machine (also on a GPU), without a cluster or a framework's overheads.
std::shared_ptr<const OpCost> measured_times(const std::string& file, DeviceKind device) {
  const auto cost = make_times({.profiles = {}, .machine = file, .stack = ""}, this_machine(1), 1).cost;
  if (cost->traits().synchronous_host != (device == DeviceKind::cpu))
    throw_usage(
        "{}: found times of {}, the rehearsal runs on {}; calibrate on a profile that windtunnel bench measured there",
        file, cost->traits().synchronous_host ? "a CPU" : "GPUs",
        device == DeviceKind::cpu ? "this machine's CPU" : "its GPU");
  return cost;
}

void check_times(const OpCost& cost, const RunSpec& run, const fs::path& run_yaml, bool kept) {
  const Program program = rank_program(run);
  try {
    for (const OpInstance& op : unroll(program))
      if (!op.op->asynchronous() && !op.op->work.empty())
        cost.segment(*op.op, static_cast<double>(run.tokens_per_microbatch() * run.model.top_k));
  } catch (const Error& e) {
    if (!kept) throw;
    throw_error(e.code(), "{}; the shapes of this rehearsal: windtunnel bench kernels --quick --run {}", e.what(),
                run_yaml.string());
  }
}

void rehearse(const Options& o) {
  const fs::path file = run_file(o.plan);
  const RunSpec plan = read_run(file);
  const auto figures = read_plan_figures(file, plan);
  const std::vector<std::string> names = !plan.rehearsal.routing.empty() ? std::vector{plan.rehearsal.routing}
                                         : figures                       ? figures->routing
                                                                         : routing_for_model(plan.model);
  const auto routing_of = [&](const RunSpec& run) {
    return read_routing(names, run.model, run.tokens(), run.layout.expert).source;
  };
  RunSpec run = reduced_run(plan, routing_of, limits_of(plan.rehearsal.device));
  if (run.model.vocab != plan.model.vocab || run.seq != plan.seq || !fs::exists(run.dataset.folder())) {
    run.dataset.use_folder({});
    run.evaluation = {};  // its end token may exceed a reduced vocabulary, and nothing is evaluated
  }
  const auto source = routing_of(run), plan_source = routing_of(plan);

  const bool kept = !o.output.empty();
  std::optional<ScratchFolder> scratch;
  if (!kept) scratch.emplace("windtunnel-rehearsal");
  const fs::path folder = kept ? make_folder(o.output) : scratch->path();
  const fs::path run_yaml = folder / "run.yaml", recording = folder / "planned-routing.csv";
  run.rehearsal.routing = recording.string();
  constexpr std::int64_t kWarmUp = 2;  // as in windtunnel-train
  write_file_atomically(recording, RankRouting(run, *source).recording(kWarmUp + run.rehearsal.steps));
  write_file_atomically(run_yaml, run_to_yaml(run));
  std::shared_ptr<const OpCost> times;
  if (!o.machine.empty()) times = measured_times(o.machine, run.device), check_times(*times, run, run_yaml, kept);

  const std::string reduced = reduction(plan, run);
  fmt::print(stderr, "rehearsing rank {} of {} ({}){}\n", run.rehearsal.rank, plan.name, plan.layout.name(),
             reduced.empty() ? "" : " " + reduced);
  run_trainer({"train", "--rehearse", run_yaml.string(), "-o", folder.string()}, folder / "log.txt");

  Rehearsal result = read_rehearsal_result(plan, run, folder, *source, *plan_source, times.get());
  result.figures = figures;
  Report report = rehearsal_report(result);
  report.provenance =
      provenance({{"plan", file.string()}, {"routing", result.routing}, {"times", times ? o.machine : "none"}});
  if (!times)
    report.sections[0].items.push_back(
        Callout{Status::none, "For predicted times of these shapes",
                fmt::format("windtunnel bench kernels --quick --run {0}/run.yaml -o {0}/bench.json; windtunnel "
                            "calibrate {0}/bench.json -o {0}/machine.json; then again with --machine {0}/machine.json",
                            kept ? o.output : "out/rehearsal")});
  if (kept)
    for (const fs::path& written : write_report(report, folder, "report"))
      fmt::print(stderr, "wrote {}\n", written.string());
  put_report(report, o.json);
  if (report.status == Status::bad) set_status(static_cast<int>(Code::finding));
}

}  // namespace

bool asks_for_rehearsal(const std::vector<std::string>& arguments) {
  const auto is = [&](const auto& matches) { return std::ranges::any_of(arguments, matches); };
  return is([](const std::string& a) { return a == "--rehearse" || a.starts_with("--rehearse="); }) &&
         !is([](const std::string& a) { return a == "--help" || a == "-h"; });
}

void rehearse(std::vector<std::string> arguments) {
  CLI::App app("", "windtunnel train");  // windtunnel-train prints the help
  Options o;
  app.add_option("--rehearse", o.plan)->required();
  app.add_option("--machine", o.machine);
  app.add_option("-o,--output", o.output)->check(writable(Output::folder));
  app.add_flag("--json", o.json);
  std::ranges::reverse(arguments);  // CLI11's order
  app.parse(arguments);
  rehearse(o);
}

}  // namespace wt
