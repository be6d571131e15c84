// windtunnel watch: recovers runs automatically, within limits. Without --act it only says what it would do.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/health/dcgm.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "configs/files/run.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/watch/watch_report.hpp"
#include "planner/watch/left_over.hpp"
#include "planner/watch/plan_baseline.hpp"
#include "planner/watch/rollback.hpp"
#include "planner/watch/run_watch.hpp"
#include "reports/render/text_report.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string rules = "default", hooks, plan, dcgm;
  bool act = false, once = false, reset = false, json = false;
};

/// Median over the devices of the exporter's file.
std::optional<double> utilisation_in(const std::string& file) {
  std::vector<double> busy;
  for (const NodeObservation& node : nodes_from_dcgm(read_file(file, "for --dcgm a file"), file, ""))
    for (const DeviceObservation& device : node.devices)
      if (device.utilisation) busy.push_back(*device.utilisation);
  return busy.empty() ? std::nullopt : std::optional(median(busy));
}

void check(const Options& o) {
  if (o.act && o.hooks.empty())
    throw_usage("--act: found no --hooks, needs the commands that it may run, as in: --hooks hooks-slurm");
  if (!o.dcgm.empty()) utilisation_in(o.dcgm);
  if (!o.plan.empty() && o.runs.size() > 1)
    throw_usage("--plan: found {} runs, needs one: a plan is of one run", o.runs.size());
}

RunWatchOptions options_of(const Options& o, const std::string& run, const std::optional<PlannedRun>& planned) {
  RunWatchOptions out{.rules = read_watch_rules(o.rules), .clock = [] { return clock_s(CLOCK_REALTIME); }};
  if (!o.hooks.empty()) {
    const WatchHooks hooks = read_watch_hooks(o.hooks);  // a wrong file is an error without --act, too
    check_start(hooks, out.rules);
    if (o.act) out.hooks = hooks;
  }
  if (planned) out.baseline = {planned->step_s, planned->mfu, planned->tokens_per_s};
  out.ask = [](const LossQuestion& question) { return LossFigures{.slow_factor = question.slow_factor}; };
  if (planned) out.ask = planner_of(o.plan, run, [](const std::string& said) { fmt::print(stderr, "{}\n", said); });
  out.utilisation = [file = o.dcgm]() -> std::optional<double> {
    if (file.empty()) return {};
    try {
      return utilisation_in(file);
    } catch (const Error& e) {  // a dead exporter makes utilisation unknown
      fmt::print(stderr, "{}\n", e.what());
      return {};
    }
  };
  out.on_decision = [json = o.json, run](const nlohmann::json& decision) {
    fmt::print("{}\n", json ? decision.dump() : run + ": " + decision_line(decision));
    std::fflush(stdout);
  };
  return out;
}

/// Checks all runs once. Returns whether any continues. An unreadable file is tried again the next time.
bool look_at(std::vector<std::unique_ptr<RunWatch>>& watches, bool once) {
  bool goes_on = false;
  for (const auto& watch : watches) {
    try {
      goes_on = watch->look() || goes_on;
    } catch (const std::exception& e) {
      if (once) throw;
      fmt::print(stderr, "{}: {}\n", watch->folder().string(), e.what());
      goes_on = true;
    }
  }
  return goes_on;
}

void put_drift(const Options& o, const PlannedRun& planned, const RunWatch& watch, const TrainingObservation& seen) {
  const std::int64_t window = read_watch_rules(o.rules).window;
  const auto observed = observe_run(seen, watch.folder(), static_cast<std::size_t>(window));
  if (!observed) {
    fmt::print(stderr, "{}: {}, a comparison with the plan needs {}\n", watch.folder().string(),
               counted(seen.steps.size(), "step"), window);
    return;
  }
  if (const auto file = watch.folder() / kRunFile; std::filesystem::exists(file))
    if (const std::int64_t ranks = read_run(file).layout.world(); ranks != planned.gpus)
      fmt::print(stderr, "{}: runs on {} ranks, and the plan is for {} GPUs\n", watch.folder().string(), ranks,
                 planned.gpus);
  const PlanDrift drift = plan_drift(planned, *observed);
  if (o.json)
    fmt::print("{}\n", nlohmann::json{{"schema", "windtunnel.drift/1"}, {"drift", to_json(drift)}}.dump());
  else
    for (const Table& table : drift_tables(drift))
      fmt::print("\n{}", text_table(table, {.color = use_color(Color::automatic, 1)}));
}

void put_result(const Options& o, const std::optional<PlannedRun>& planned, RunWatch& watch) {
  const TrainingObservation& seen = watch.seen();
  if (!o.json)
    fmt::print("{}: {} {}, {}.\n", watch.folder().string(), counted(seen.steps.size(), "step"),
               seen.ended ? "done" : "so far",
               watch.decisions() == 0 ? "nothing was wrong" : counted(watch.decisions(), "decision"));
  if (planned) put_drift(o, *planned, watch, seen);
  if (watch.decisions() > 0) set_status(static_cast<int>(Code::finding));
}

void warn_of_too_few_checkpoints(const std::string& run, const std::string& rules_file) {
  const WatchRules rules = read_watch_rules(rules_file);
  if (std::ranges::none_of(rules.signals, is_loss_metric, &SignalRule::metric)) return;
  if (const std::string why = too_few_checkpoints(run, rules.rollback); !why.empty()) fmt::print(stderr, "{}\n", why);
}

void watch(const Options& o) {
  check(o);
  const auto planned = o.plan.empty() ? std::nullopt : std::optional(read_planned_run(o.plan));
  std::vector<std::unique_ptr<RunWatch>> all, live;
  for (const std::string& run : o.runs) {
    auto one = std::make_unique<RunWatch>(run, options_of(o, run, planned));
    if (o.reset) one->reset();
    const bool over = one->seen().ended;
    if (o.act && !over) warn_of_too_few_checkpoints(run, o.rules);
    if (over) one->replay();
    (over ? all : live).push_back(std::move(one));
  }
  const double every_s = read_watch_rules(o.rules).every_s;
  while (!live.empty() && look_at(live, o.once) && !o.once)
    std::this_thread::sleep_for(std::chrono::duration<double>(every_s));
  std::move(live.begin(), live.end(), std::back_inserter(all));
  for (const auto& each : all) put_result(o, planned, *each);
}

}  // namespace

void add_watch(CLI::App& app) {
  const Command command(app, "watch",
                        "Watch runs, say why one is slow, silent or lost, and with --act fix it through hooks\n"
                        "Example: windtunnel watch out/train --plan out/plan/plan.json");
  const auto o = command.runs(watch);
  command
      .option("RUN", o->runs, "Output folder of a training run, one or more; a run that is over is gone through again")
      .required()
      .existing_folder();
  command.option("--rules", o->rules, "Thresholds and limits: a file or a preset of configs/watch").shows_default();
  const Word hooks =
      command.option("--hooks", o->hooks, "Commands that save, stop, sweep, cordon and start: a file or a preset");
  command.option("--plan", o->plan, "plan.json of the run: what it is compared with, and who says what is left to do");
  command.option("--dcgm", o->dcgm, "Metrics of DCGM-exporter, a file that is read whenever something is wrong");
  command.flag("--act", o->act, "Run the hooks; without it decisions are only logged").needs(hooks);
  command.flag("--once", o->once, "Look once and end");
  command.flag("--reset", o->reset, "Close the circuit breaker first");
  command.flag("--json", o->json, "Print decisions as they are written to decisions.jsonl, a line each");
}

}  // namespace wt
