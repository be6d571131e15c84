#include "planner/watch/run_watch.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/quantity.hpp"
#include "configs/base/standard_error.hpp"
#include "configs/files/run.hpp"
#include "planner/watch/decision_log.hpp"
#include "trainer/run_folder/files.hpp"

namespace wt {
namespace {

const WatchSignal* signal_of(const std::vector<WatchSignal>& signals, std::initializer_list<WatchedMetric> metrics) {
  const auto found = std::ranges::find_if(
      signals, [&](const WatchSignal& signal) { return std::ranges::find(metrics, signal.metric) != metrics.end(); });
  return found == signals.end() ? nullptr : &*found;
}

/// Names become arguments of commands, some of which expand lists of hosts ("n[1-8]", "ALL").
void check_names(const FleetObservation& fleet) {
  for (const NodeObservation& node : fleet.nodes) {
    const bool word = std::ranges::all_of(
        node.name, [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
    if (node.name.empty() || !std::isalnum(static_cast<unsigned char>(node.name.front())) || !word ||
        node.name == "ALL")
      throw_usage(
          "found a node named '{}', allowed are letters, digits, '.', '_' and '-', the first a letter or digit, and "
          "not ALL",
          node.name);
  }
}

bool has_fewer_ranks(const std::filesystem::path& run, const std::filesystem::path& than) {
  return read_run(run).layout.world() < read_run(than).layout.world();
}

/// Whether nothing in the fleet could be judged.
bool says_nothing(const HealthVerdict& verdict) {
  return verdict.comparisons == 0 && verdict.shared.empty() &&
         std::ranges::all_of(verdict.nodes, [](const NodeVerdict& node) { return node.findings.empty(); });
}

}  // namespace

std::unique_ptr<FolderLock> watch_lock(const std::filesystem::path& run) {
  return std::make_unique<FolderLock>(run, FolderLock::Use{".watch.lock", "watch that acts on this run"});
}

Diagnosis diagnosis_of(TrainingObservation run, const std::vector<WatchSignal>& signals, const WatchRules& rules,
                       std::optional<double> utilisation) {
  run.utilisation = utilisation;
  DiagnosisOptions options{.window = static_cast<std::size_t>(rules.window)};
  options.mfu_below = 1;  // the signal has decided that the run is slow
  const bool silent = signal_of(signals, {WatchedMetric::silence});
  options.least_stall_s = silent ? 0 : kLongest_s, options.stall_factor = 0;  // and whether it is silent
  if (silent) return diagnose(run, options);
  if (const WatchSignal* lost = signal_of(signals, {WatchedMetric::loss, WatchedMetric::grad_norm}))
    return {Ailment::silent_failure, says(*lost), "go back to a checkpoint from before"};
  const WatchSignal* grows = signal_of(signals, {WatchedMetric::memory});
  if (grows && !signal_of(signals, {WatchedMetric::mfu, WatchedMetric::tokens_per_s, WatchedMetric::step_s}))
    return {Ailment::undecided, says(*grows), "find what keeps memory, before there is none left"};
  return diagnose(run, options);
}

RunWatch::RunWatch(const std::filesystem::path& folder, RunWatchOptions options)
    : folder_(std::filesystem::absolute(folder).lexically_normal()),
      options_(std::move(options)),
      lock_(options_.hooks ? watch_lock(folder_) : nullptr),
      follower_(folder_),
      ladder_(options_.rules, options_.hooks ? options_.hooks->spares : 0, options_.hooks.has_value(), options_.ask,
              read_ledger(folder_)) {
  const auto verified = ladder_.verifies();
  looked_unix_s_ = verified ? verified->second : seen().last_sign_unix_s;
}

bool RunWatch::look() {
  const TrainingObservation& run = seen();
  options_.baseline.step_factor = ladder_.ledger().step_factor;
  const RunSignals signals(run, options_.rules, options_.baseline);
  RunSnapshot snapshot{.now_unix_s = run.now_unix_s, .ended = run.ended};
  snapshot.step = run.steps.empty() ? 0 : run.steps.back().step;
  snapshot.signals = signals.now();
  for (const WatchSignal& lost : signals.lost_since(looked_unix_s_))
    if (std::ranges::count(snapshot.signals, lost.rule, &WatchSignal::rule) == 0) snapshot.signals.push_back(lost);
  if (!ladder_.verifies())
    looked_unix_s_ = run.last_sign_unix_s;  // so that a diverged loss is handled after the verification
  if (ladder_.is_new(snapshot.signals)) {
    snapshot.diagnosis = diagnosis_of(run, snapshot.signals, options_.rules, options_.utilisation());
    if (std::ranges::any_of(snapshot.signals, is_loss_metric, &WatchSignal::metric))
      snapshot.rollback_targets = read_rollback_targets(folder_);
  }
  if (const auto verified = ladder_.verifies())
    snapshot.recovered = signals.recovered(verified->first, verified->second, options_.rules.verify_steps);
  follow(ladder_.look(snapshot));
  return !run.ended;
}

std::vector<WatchSignal> RunWatch::standing() { return RunSignals(seen(), options_.rules, options_.baseline).now(); }

void RunWatch::replay() {
  const TrainingObservation& whole = seen();
  const RunSignals signals(whole, options_.rules, options_.baseline);
  recorded_ = false;
  ladder_ = Ladder(options_.rules, 0, false, options_.ask, {});
  const auto look_at = [&](std::size_t steps, double now_unix_s) {
    RunSnapshot snapshot{.now_unix_s = now_unix_s, .step = whole.steps[steps - 1].step};
    snapshot.signals = signals.after(steps, now_unix_s);
    if (ladder_.is_new(snapshot.signals)) {
      TrainingObservation then = whole;
      then.steps.resize(steps), then.now_unix_s = now_unix_s, then.ended = false;
      then.last_sign_unix_s = then.steps.back().unix_s;
      snapshot.diagnosis = diagnosis_of(std::move(then), snapshot.signals, options_.rules, {});
    }
    follow(ladder_.look(snapshot));
  };
  for (std::size_t steps = 1; steps <= whole.steps.size(); ++steps) {
    look_at(steps, whole.steps[steps - 1].unix_s);
    if (steps == whole.steps.size()) break;
    const TrainingStep& next = whole.steps[steps];
    if (!signals.after(steps, next.unix_s - next.step_s).empty()) look_at(steps, next.unix_s - next.step_s);
  }
}

void RunWatch::reset() {
  const auto lock = lock_ ? nullptr : watch_lock(folder_);
  NodeLedger ledger = read_ledger(folder_);
  ledger.breaker.clear(), ledger.causes.clear(), ledger.trial.reset(), ledger.rollback.reset();
  std::erase_if(ledger.cordoned, [](const auto& node) { return node.second.back; });
  ladder_ = Ladder(options_.rules, options_.hooks ? options_.hooks->spares : 0, options_.hooks.has_value(),
                   options_.ask, std::move(ledger));
  record({.unix_s = options_.clock(), .why = "a human closed the circuit breaker"}, nullptr, true);
  decisions_ = 0;
}

void RunWatch::follow(std::optional<WatchVerdict> verdict) {
  while (verdict) {
    if (!verdict->action) return record(*verdict, nullptr, options_.hooks.has_value());
    const ActionEnd end = perform(*verdict);
    const WatchVerdict done = *std::exchange(verdict, ladder_.ended(end));
    record(done, &end.end, true);
  }
}

ActionEnd RunWatch::perform(const WatchVerdict& verdict) {
  const WatchAction& action = *verdict.action;
  const auto command = options_.hooks->commands.find(action.hook);
  HookValues values{.run = folder_.string(), .node = action.node, .reason = verdict.why, .layout = action.layout};
  values.excluded = fmt::format("{}", fmt::join(action.excluded, ","));
  ActionEnd out;
  try {
    if (command == options_.hooks->commands.end())
      out.end.how = HookEnd::How::absent;
    else if (action.hook == HookKind::sweep)
      out = sweep(command->second, std::move(values));
    else if (action.hook == HookKind::start)
      out.end = start(command->second, std::move(values), action);
    else
      out.end = run_hook({filled_in(command->second, values)}, command->second.timeout_s, folder_ / "hooks.log");
  } catch (const std::exception& e) {  // such as a full disk: what is begun has to be brought to an end
    out.end.how = HookEnd::How::failed, out.end.said = e.what();
  }
  out.unix_s = options_.clock();
  return out;
}

/// A start that skips batches needs its own run file. It is made from the job's own one, because run.yaml has the
/// shrunk layout while the job runs with that. Without a rollback, only batches that run.yaml still skips are skipped:
/// otherwise the job was begun anew, or a human decided so.
HookEnd RunWatch::start(const HookCommand& command, HookValues values, const WatchAction& action) {
  const auto now = folder_ / kRunFile, own = folder_ / "run-own.yaml", skipping = folder_ / "run-skipping.yaml";
  const auto skipped = action.rollback || action.skipped.empty()
                           ? action.skipped
                           : common(action.skipped, read_run(now).resilience.skipped);
  if (!skipped.empty()) {
    using std::filesystem::copy_options;
    const bool shrunk = !ladder_.ledger().layout.empty() || (std::filesystem::exists(own) && has_fewer_ranks(now, own));
    if (!shrunk) std::filesystem::copy_file(now, own, copy_options::overwrite_existing);
    write_skipping(action.layout.empty() ? own : std::filesystem::path(action.layout), skipped, skipping);
    values.layout = skipping.string();
  }
  return run_hook({filled_in(command, values)}, command.timeout_s, folder_ / "hooks.log");
}

ActionEnd RunWatch::sweep(const HookCommand& command, HookValues values) {
  const std::filesystem::path file = folder_ / fmt::format("sweep-{}.json", ++sweeps_);
  std::filesystem::remove(file);  // an old file would be taken for the answer
  values.output = file.string();
  ActionEnd out{.end = run_hook({filled_in(command, values)}, command.timeout_s, folder_ / "hooks.log")};
  if (out.end.how != HookEnd::How::ok) return out;
  try {
    const FleetObservation fleet = read_fleet({file});
    check_names(fleet);
    out.sweep = judge(fleet);
    if (says_nothing(out.sweep)) throw_usage("{}: holds nothing that can be judged", file.string());
  } catch (const Error& e) {
    out.end.how = HookEnd::How::no_answer;
    out.end.said = e.what();
  }
  return out;
}

void RunWatch::record(const WatchVerdict& verdict, const HookEnd* end, bool with_ledger) {
  const nlohmann::json decision =
      decision_json(folder_.string(), verdict, end, with_ledger ? &ladder_.ledger() : nullptr);
  ++decisions_;
  if (recorded_) try {
      append_decision(decisions_file(folder_), decision);
    } catch (const std::exception& e) {
      print_error("{}\n", e.what());  // continue: the following decisions are still needed
    }
  try {
    options_.on_decision(decision);
  } catch (const std::system_error&) {  // the reader has gone
  }
}

}  // namespace wt
