#include "planner/watch/log_watch.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/standard_error.hpp"
#include "planner/watch/decision_log.hpp"

namespace wt {
namespace {

/// When the log was last written to. Infinite where it is gone.
double written_unix_s(const std::filesystem::path& log) {
  using std::chrono::duration, std::chrono::file_clock;
  std::optional<double> last;
  for (const std::filesystem::path& file : files_of_log(log)) {
    std::error_code gone;
    const auto written = std::filesystem::last_write_time(file, gone);
    if (gone) continue;
    last = std::max(last.value_or(0), duration<double>(file_clock::to_sys(written).time_since_epoch()).count());
  }
  return last.value_or(std::numeric_limits<double>::infinity());
}

/// A log does not say why a job is slow or silent, so that the ladder leaves it to a human.
Diagnosis diagnosis_of_log(const std::vector<WatchSignal>& signals) {
  std::vector<std::string> reasons;
  for (const WatchSignal& signal : signals) reasons.push_back(says(signal));
  return {Ailment::undecided, fmt::format("{}", fmt::join(reasons, "; ")), "look at the job"};
}

/// A log has no plan, and nobody to sweep.
WatchRules rules_for_log(WatchRules rules) {
  std::erase_if(rules.signals, [](const SignalRule& rule) { return rule.of == WatchReference::plan; });
  rules.sweep_undecided = false;
  return rules;
}

}  // namespace

LogWatch::LogWatch(const std::filesystem::path& log, LogWatchOptions options)
    : file_(log),
      options_(std::move(options)),
      given_(rules_for_log(options_.rules)),
      rules_(given_),
      follower_(log),
      ladder_(rules_, 0, options_.tell.has_value(), {}, {}) {}

void LogWatch::say(const std::string& what) {
  if (!what.empty() && said_.insert(what).second) options_.said(what);
}

void LogWatch::read() {
  for (const std::string& what : follower_.look()) options_.said(what);
  const double now = options_.clock();
  seen_.now_unix_s = now;
  if (!follower_.grew() && !readings_.empty()) return;
  const JobLog log = follower_.log();
  // Nobody knows when the first lines were written, but not after the file was.
  if (readings_.empty()) readings_.push_back({log.places, std::min(now, written_unix_s(file_))});
  if (log.places > readings_.back().places) readings_.push_back({log.places, now});
  seen_ = watched_log(log, readings_, now);
  for (const std::string& note : log.notes) say(note);
  const bool timed = std::ranges::any_of(seen_.lines, [](const WatchedLine& line) { return line.step_s.has_value(); });
  const bool rated = std::ranges::any_of(seen_.lines, [](const WatchedLine& line) { return bool(line.tokens_per_s); });
  rules_.signals = !timed && rated ? by_rate(given_.signals) : given_.signals;
  if (std::ssize(seen_.lines) >= rules_.window) say(says_missing(seen_, rules_.signals));
}

bool LogWatch::look() {
  read();
  const RunSignals signals(seen_, rules_);
  RunSnapshot snapshot{.now_unix_s = seen_.now_unix_s, .signals = signals.now(), .ended = seen_.ended};
  snapshot.step = seen_.lines.empty() ? 0 : seen_.lines.back().step;
  if (looked_unix_s_ > 0)
    for (const WatchSignal& lost : signals.lost_since(looked_unix_s_))
      if (std::ranges::count(snapshot.signals, lost.rule, &WatchSignal::rule) == 0) snapshot.signals.push_back(lost);
  looked_unix_s_ = seen_.now_unix_s;
  snapshot.diagnosis = diagnosis_of_log(snapshot.signals);
  follow(ladder_.look(snapshot));
  return !seen_.ended;
}

void LogWatch::follow(std::optional<WatchVerdict> verdict) {
  while (verdict) {
    const WatchVerdict now = *verdict;
    const auto end = now.action ? std::optional(perform(now)) : std::nullopt;
    verdict = end ? ladder_.ended({.unix_s = options_.clock(), .end = *end}) : std::nullopt;
    const nlohmann::json decision =
        decision_json(std::filesystem::absolute(file_).string(), now, end ? &*end : nullptr, nullptr);
    ++decisions_;
    try {
      append_decision(options_.decisions, decision);
    } catch (const std::exception& e) {
      print_error("{}\n", e.what());  // what follows is still needed
    }
    try {
      options_.on_decision(decision);
    } catch (const std::system_error&) {  // the reader has gone
    }
  }
}

/// Of all actions a log's watch has only the one that tells a human.
HookEnd LogWatch::perform(const WatchVerdict& verdict) try {
  if (verdict.action->hook != HookKind::tell)
    throw_runtime("watch of a log: found the action {}, needs tell", to_string(verdict.action->hook));
  const HookValues values{.run = std::filesystem::absolute(file_).string(), .reason = verdict.why};
  const auto output = std::filesystem::path(options_.decisions).replace_extension(".hooks.log");
  return run_hook({filled_in(*options_.tell, values)}, options_.tell->timeout_s, output);
} catch (const std::exception& e) {  // such as a full disk: the decision is still to be written down
  return {.how = HookEnd::How::failed, .said = e.what()};
}

}  // namespace wt
