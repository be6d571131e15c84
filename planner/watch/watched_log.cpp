#include "planner/watch/watched_log.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace wt {
namespace {

double read_at(std::int64_t place, const std::vector<LogReading>& readings) {
  const auto found = std::ranges::lower_bound(readings, place, {}, &LogReading::places);
  return (found == readings.end() ? readings.back() : *found).unix_s;
}

/// Seconds between two lines. A clock that goes back, or is missing, is no clock.
std::optional<double> seconds_between(const LoggedStep& before, const LoggedStep& step) {
  if (before.clock_s && step.clock_s && *step.clock_s > *before.clock_s) return *step.clock_s - *before.clock_s;
  if (step.step_s) return *step.step_s * static_cast<double>(step.step - before.step);
  return {};
}

}  // namespace

std::optional<double> value_of(const WatchedLine& line, WatchedMetric metric) {
  switch (metric) {
    case WatchedMetric::mfu:
      return line.mfu;
    case WatchedMetric::tokens_per_s:
      return line.tokens_per_s;
    case WatchedMetric::step_s:
      return line.step_s;
    case WatchedMetric::memory:
      return line.memory_bytes;
    case WatchedMetric::loss:
      return line.loss;
    case WatchedMetric::grad_norm:
      return line.grad_norm;
    case WatchedMetric::silence:
      return {};
  }
  return {};
}

WatchedLog watched_log(const JobLog& log, const std::vector<LogReading>& readings, double now_unix_s) {
  WatchedLog out{.now_unix_s = now_unix_s, .last_sign_unix_s = readings.front().unix_s, .ended = log.ended};
  const bool by_gpu = std::ranges::any_of(log.steps, [](const LoggedStep& s) { return bool(s.tokens_per_s_per_gpu); });
  for (const LoggedStep& step : log.steps) {
    WatchedLine& line = out.lines.emplace_back(WatchedLine{.step = step.step, .unix_s = read_at(step.place, readings)});
    if (&step != &log.steps.front()) line.interval_s = seconds_between(*(&step - 1), step);
    line.step_s = step.step_s, line.tokens_per_s = by_gpu ? step.tokens_per_s_per_gpu : step.tokens_per_s;
    line.mfu = step.mfu, line.memory_bytes = step.memory_bytes;
    line.loss = step.loss, line.grad_norm = step.grad_norm;
  }
  if (!out.lines.empty()) out.last_sign_unix_s = out.lines.back().unix_s;
  return out;
}

std::vector<SignalRule> by_rate(std::vector<SignalRule> rules) {
  for (SignalRule& rule : rules)
    if (rule.metric == WatchedMetric::step_s && (rule.of == WatchReference::best || rule.of == WatchReference::recent))
      rule.metric = WatchedMetric::tokens_per_s, rule.above = !rule.above, rule.factor = 1 / rule.factor;
  return rules;
}

std::string says_missing(const WatchedLog& log, const std::vector<SignalRule>& rules) {
  std::set<std::string> metrics;
  std::vector<std::string> names;
  for (const SignalRule& rule : rules) {
    const auto has = [&](const WatchedLine& line) { return value_of(line, rule.metric).has_value(); };
    if (rule.metric == WatchedMetric::silence || std::ranges::any_of(log.lines, has)) continue;
    metrics.insert(to_string(rule.metric));
    names.push_back(rule.name);
  }
  if (names.empty()) return "";
  return fmt::format("says no {}: nothing is seen by {}", fmt::join(metrics, ", "), fmt::join(names, ", "));
}

}  // namespace wt
