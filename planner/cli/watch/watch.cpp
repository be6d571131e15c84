// windtunnel watch: recovers runs automatically, within limits. Without --act it only says what it would do. Of the log
// of a job that another trainer runs it says what is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/health/dcgm.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/base/statistics.hpp"
#include "configs/base/text.hpp"
#include "configs/files/run.hpp"
#include "planner/cli/parts/commands.hpp"
#include "planner/cli/parts/output.hpp"
#include "planner/cli/parts/words.hpp"
#include "planner/cli/watch/watch_report.hpp"
#include "planner/watch/left_over.hpp"
#include "planner/watch/log_watch.hpp"
#include "planner/watch/plan_baseline.hpp"
#include "planner/watch/rollback.hpp"
#include "planner/watch/run_watch.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string rules = "default", hooks, plan, dcgm, decisions;
  std::int64_t last = 1000;
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

bool is_log(const std::string& run) {
  std::error_code none;
  const auto kind = std::filesystem::status(run, none).type();
  if (kind != std::filesystem::file_type::directory && kind != std::filesystem::file_type::regular)
    throw_usage("{}: found neither a folder nor a regular file, needs the output folder of a run or the log of a job",
                run);
  if (kind == std::filesystem::file_type::regular) return true;
  return is_event_folder(run) && !std::filesystem::exists(std::filesystem::path(run) / kMetricsFile, none);
}

/// What needs more than a log says.
void check_log(const Options& o, const std::string& log) {
  if (!o.plan.empty())
    throw_usage("--plan: found with {}, a log; needs the folder of a run. explain compares a log with its prediction",
                log);
  if (!o.dcgm.empty())
    throw_usage("--dcgm: found with {}, a log; needs the folder of a run: a log does not say why a job is slow", log);
  if (o.reset)
    throw_usage("--reset: found with {}, a log; needs the folder of a run: only its watch has a circuit breaker", log);
  if (o.hooks.empty()) return;
  read_tell_hook(o.hooks);  // a wrong file is an error without --act, too
  if (o.act)
    print_error(
        "{}: of the hooks only tell is run. save, stop, sweep, cordon, uncordon and start are not run for a log: "
        "it does not say whether the job still runs, on which nodes, and which checkpoints it has\n",
        log);
}

void check(const Options& o) {
  if (o.act && o.hooks.empty())
    throw_usage("--act: found no --hooks, needs the commands that it may run, as in: --hooks hooks-slurm");
  if (!o.dcgm.empty()) utilisation_in(o.dcgm);
  if (!o.plan.empty() && o.runs.size() > 1)
    throw_usage("--plan: found {} runs, needs one: a plan is of one run", o.runs.size());
  std::size_t logs = 0;
  for (const std::string& run : o.runs)
    if (is_log(run)) check_log(o, run), ++logs;
  if (!o.decisions.empty() && (o.runs.size() > 1 || logs == 0))
    throw_usage("--decisions: found {}, needs one log: a run has decisions.jsonl, from which the next watch continues",
                logs == 0 ? "no log" : fmt::format("{} runs and logs", o.runs.size()));
}

std::function<void(const nlohmann::json&)> decision_printer(const Options& o, const std::string& run) {
  return [json = o.json, run](const nlohmann::json& decision) {
    fmt::print("{}\n", json ? decision.dump() : run + ": " + decision_line(decision));
    std::fflush(stdout);
  };
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
  if (planned) out.ask = planner_of(o.plan, run, [](const std::string& said) { print_error("{}\n", said); });
  out.utilisation = [file = o.dcgm]() -> std::optional<double> {
    if (file.empty()) return {};
    try {
      return utilisation_in(file);
    } catch (const Error& e) {  // a dead exporter makes utilisation unknown
      print_error("{}\n", e.what());
      return {};
    }
  };
  out.on_decision = decision_printer(o, run);
  return out;
}

LogWatchOptions options_of_log(const Options& o, const std::string& log) {
  LogWatchOptions out{.rules = read_watch_rules(o.rules)};
  if (o.act) out.tell = read_tell_hook(o.hooks);
  const std::string beside = log.substr(0, log.find_last_not_of('/') + 1) + ".decisions.jsonl";
  out.decisions = o.decisions.empty() ? beside : o.decisions;
  out.clock = [] { return clock_s(CLOCK_REALTIME); };
  out.on_decision = decision_printer(o, log);
  out.said = [log](const std::string& what) { print_error("{}: {}\n", log, what); };
  return out;
}

/// Reads all logs once. One that cannot be read any further is left, and the others are watched on.
bool look_at(std::vector<std::unique_ptr<LogWatch>>& logs) {
  bool goes_on = false;
  std::erase_if(logs, [&](const auto& log) {
    try {
      goes_on = log->look() || goes_on;
      return false;
    } catch (const std::exception& e) {
      print_error("{}\n", e.what());
      return true;
    }
  });
  return goes_on;
}

/// Checks all runs once. Returns whether any continues. An unreadable file is tried again the next time.
bool look_at(std::vector<std::unique_ptr<RunWatch>>& watches, bool once) {
  bool goes_on = false;
  for (const auto& watch : watches) {
    try {
      goes_on = watch->look() || goes_on;
    } catch (const std::exception& e) {
      if (once) throw;
      print_error("{}: {}\n", watch->folder().string(), e.what());
      goes_on = true;
    }
  }
  return goes_on;
}

void put_drift(const Options& o, const PlannedRun& planned, const RunWatch& watch, const TrainingObservation& seen) {
  const std::int64_t window = read_watch_rules(o.rules).window;
  const auto observed = observe_run(seen, watch.folder(), static_cast<std::size_t>(window));
  if (!observed) {
    print_error("{}: {}, a comparison with the plan needs {}\n", watch.folder().string(),
                counted(seen.steps.size(), "step"), window);
    return;
  }
  if (const auto file = watch.folder() / kRunFile; std::filesystem::exists(file))
    if (const std::int64_t ranks = read_run(file).layout.world(); ranks != planned.gpus)
      print_error("{}: runs on {} ranks, and the plan is for {} GPUs\n", watch.folder().string(), ranks, planned.gpus);
  const PlanDrift drift = plan_drift(planned, *observed);
  if (o.json)
    fmt::print("{}\n", nlohmann::json{{"schema", "windtunnel.drift/1"}, {"drift", to_json(drift)}}.dump());
  else
    for (const Table& table : drift_tables(drift)) fmt::print("\n{}", shown_table(table));
}

/// What holds after the last step, in words or as one line of JSON.
void put_standing(const Options& o, const std::string& run, const std::vector<WatchSignal>& standing,
                  std::int64_t last_step) {
  if (!standing.empty()) set_status(static_cast<int>(Code::finding));
  if (o.json)
    fmt::print("{}\n", standing_json(run, standing, last_step, o.last).dump());
  else if (!standing.empty())
    fmt::print("\n{}", shown_table(standing_table(standing, last_step, o.last)));
}

std::string said_of(std::int64_t decisions) {
  return decisions == 0 ? "nothing was wrong" : counted(decisions, "decision");
}

void put_summary(const Options& o, const std::string& run, const std::string& steps, bool ended,
                 const std::string& found) {
  if (!o.json) fmt::print("{}: {} {}, {}.\n", run, steps, ended ? "done" : "so far", found);
}

void put_result(const Options& o, const std::optional<PlannedRun>& planned, RunWatch& watch) {
  const TrainingObservation& seen = watch.seen();
  const std::string run = watch.folder().string();
  put_summary(o, run, counted(seen.steps.size(), "step"), seen.ended, said_of(watch.decisions()));
  if (watch.decisions() > 0) set_status(static_cast<int>(Code::finding));
  if (o.once) put_standing(o, run, watch.standing(), seen.steps.empty() ? 0 : seen.steps.back().step);
  if (planned) put_drift(o, *planned, watch, seen);
}

/// Of a log that is over when the watch begins nothing is decided, but something may stand.
void put_result(const Options& o, const LogWatch& watch) {
  const WatchedLog& seen = watch.seen();
  const std::vector<WatchSignal> standing = watch.standing();
  const std::string found = watch.decisions() > 0 || standing.empty()
                                ? said_of(watch.decisions())
                                : counted(standing.size(), "signal") + " in the end";
  put_summary(o, watch.file().string(), counted(seen.lines.size(), "logged step"), seen.ended, found);
  if (watch.decisions() > 0) set_status(static_cast<int>(Code::finding));
  put_standing(o, watch.file().string(), standing, seen.lines.empty() ? 0 : seen.lines.back().step);
}

void warn_of_too_few_checkpoints(const std::string& run, const std::string& rules_file) {
  const WatchRules rules = read_watch_rules(rules_file);
  if (std::ranges::none_of(rules.signals, is_loss_metric, &SignalRule::metric)) return;
  if (const std::string why = too_few_checkpoints(run, rules.rollback); !why.empty()) print_error("{}\n", why);
}

void watch(const Options& o) {
  check(o);
  const auto planned = o.plan.empty() ? std::nullopt : std::optional(read_planned_run(o.plan));
  std::vector<std::unique_ptr<RunWatch>> all, live;
  std::vector<std::unique_ptr<LogWatch>> logs;
  for (const std::string& run : o.runs) {
    if (is_log(run)) {
      logs.push_back(std::make_unique<LogWatch>(run, options_of_log(o, run)));
      continue;
    }
    auto one = std::make_unique<RunWatch>(run, options_of(o, run, planned));
    if (o.reset) one->reset();
    const bool over = one->seen().ended;
    if (o.act && !over) warn_of_too_few_checkpoints(run, o.rules);
    if (over) one->replay();
    (over ? all : live).push_back(std::move(one));
  }
  const double every_s = read_watch_rules(o.rules).every_s;
  const std::size_t readable = logs.size();
  const auto goes_on = [&] {
    const bool runs = look_at(live, o.once);
    return look_at(logs) || runs;
  };
  while (goes_on() && !o.once) std::this_thread::sleep_for(std::chrono::duration<double>(every_s));
  std::move(live.begin(), live.end(), std::back_inserter(all));
  for (const auto& each : all) put_result(o, planned, *each);
  for (const auto& each : logs) put_result(o, *each);
  if (logs.size() < readable) set_status(static_cast<int>(Code::usage));
}

}  // namespace

void add_watch(CLI::App& app) {
  const Command command(app, "watch",
                        "Watch runs, say why one is slow, silent or lost, and with --act fix it through hooks\n"
                        "Example: windtunnel watch out/train --plan out/plan/plan.json");
  const auto o = command.runs(watch);
  command
      .option(
          "RUN", o->runs,
          "Output folder of a training run, or the log of a job of another trainer, one or more; a run that is over is "
          "gone through again")
      .required();
  command.option("--rules", o->rules, "Thresholds and limits: a file or a preset of configs/watch").shows_default();
  const Word hooks =
      command.option("--hooks", o->hooks, "Commands that save, stop, sweep, cordon and start: a file or a preset");
  command.option("--plan", o->plan, "plan.json of the run: what it is compared with, and who says what is left to do");
  command.option("--dcgm", o->dcgm, "Metrics of DCGM-exporter, a file that is read whenever something is wrong");
  command.flag("--act", o->act, "Run the hooks; without it decisions are only logged").needs(hooks);
  const Word once = command.flag("--once", o->once, "Look once, say what still stands, and end");
  command
      .option("--last", o->last,
              "What still stands: signals that began in so many last steps are listed, older ones counted")
      .shows_default()
      .between(std::int64_t{1}, std::int64_t{1} << 40)
      .needs(once);
  command.option("--decisions", o->decisions, "Where decisions about a log go; else into LOG.decisions.jsonl");
  command.flag("--reset", o->reset, "Close the circuit breaker first");
  command.flag("--json", o->json, "Print decisions as they are written to decisions.jsonl, a line each");
}

}  // namespace wt
