// A ladder that is run action by action, as a test says how each ends.
#pragma once
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/watched_run.hpp"

namespace wt::test {

inline Sight sight_of(WatchedMetric metric, Ailment ailment, std::int64_t step = 100, double now = 1000) {
  Sight out{.now_unix_s = now, .step = step};
  out.signals = {{to_string(metric), metric, 2, 1, 1.2, step - 3, step}};
  out.diagnosis = {ailment, "steps take 2 s instead of 1 s", ""};
  out.diagnosis.relative_pace = 0.5;
  return out;
}

inline Sight slow(std::int64_t step = 100) { return sight_of(WatchedMetric::step_s, Ailment::slow_hardware, step); }
inline Sight silent(std::int64_t step = 100) { return sight_of(WatchedMetric::silence, Ailment::silent_failure, step); }

/// Where the loss is lost, with a checkpoint of every tenth step before.
inline Sight lost(std::int64_t step = 100) {
  Sight out = sight_of(WatchedMetric::loss, Ailment::silent_failure, step);
  out.way_back.emplace();
  for (std::int64_t saved = step / 10 * 10; saved > 0; saved -= 10) out.way_back->checkpoints.push_back(saved);
  return out;
}

/// Until the run's end an hour of work; a restart takes a minute, a repair a day.
inline LossFigures hour_left(const LossQuestion& question) {
  return {.restart_s = 60, .repair_s = 86400, .remaining_s = 3600, .slow_factor = question.slow_factor};
}

inline AskPlanner shrinks_by(double factor) {
  return [factor](const LossQuestion& question) {
    LossFigures out = hour_left(question);
    out.shrunk_factor = factor, out.shrunk_layout = "layout-24.yaml";
    return out;
  };
}

inline LossFigures nothing_known(const LossQuestion&) { return {}; }

/// Runs a ladder, action by action, as scripted; what it did stands in `did`: "save", "cordon n2", "start spare".
struct Script {
  explicit Script(std::int64_t spares, AskPlanner ask = hour_left, NodeLedger ledger = {}, bool acts = true)
      : ladder(short_rules(), spares, acts, std::move(ask), std::move(ledger)) {}

  std::vector<HealthVerdict> sweeps = {};         ///< what each finds
  std::map<std::string, HookEnd::How> ends = {};  ///< of actions that do not end well
  std::vector<std::string> did = {};
  std::vector<WatchVerdict> verdicts = {};
  Ladder ladder;
  double now = 1000;

  void look(Sight sight) {
    sight.now_unix_s = now;
    did.clear(), verdicts.clear();
    std::size_t swept = 0;
    for (auto verdict = ladder.look(sight); verdict;) {
      verdicts.push_back(*verdict);
      if (!verdict->action) return;
      const WatchAction& action = *verdict->action;
      const std::string hook = to_string(action.hook), name = action.node.empty() ? hook : hook + " " + action.node;
      did.push_back(action.hook == HookKind::start && !action.layout.empty() ? name + " " + action.layout : name);
      ActionEnd end{.unix_s = now += 10};
      if (const auto bad = ends.find(name); bad != ends.end()) end.end.how = bad->second;
      if (action.hook == HookKind::sweep && end.end.how == HookEnd::How::ok) end.sweep = sweeps.at(swept++);
      verdict = ladder.ended(end);
    }
  }
  /// After a start: what its steps show.
  void verify(std::optional<bool> mended, std::int64_t step = 200, double after_s = 100) {
    Sight sight{.step = step, .mended = mended};
    now += after_s;
    look(sight);
  }
  const std::string& why() const { return verdicts.back().why; }
};

using Names = std::vector<std::string>;
inline const HealthVerdict kHealthy = sweep_of(8, {}), kThird = sweep_of(8, {"n2"});

}  // namespace wt::test
