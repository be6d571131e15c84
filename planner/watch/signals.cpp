#include "planner/watch/signals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "configs/spec/support/statistics.hpp"

namespace wt {
namespace {

using Values = std::vector<std::optional<double>>;

std::optional<double> value_of(const TrainingStep& step, WatchedMetric metric) {
  switch (metric) {
    case WatchedMetric::mfu:
      return step.mfu;
    case WatchedMetric::tokens_per_s:
      return step.tokens_per_s;
    case WatchedMetric::step_s:
      return step.step_s;
    case WatchedMetric::loss:
      return step.loss;
    case WatchedMetric::grad_norm:
      return step.grad_norm;
    case WatchedMetric::silence:
      return {};
  }
  return {};
}

/// Median of values[from, until); none unless all are known, NaN where one is no number.
std::optional<double> median_of(const Values& values, std::size_t from, std::size_t until) {
  std::vector<double> known;
  for (std::size_t i = from; i < until; ++i) {
    if (!values[i]) return {};
    if (!std::isfinite(*values[i])) return std::numeric_limits<double>::quiet_NaN();
    known.push_back(*values[i]);
  }
  return known.empty() ? std::nullopt : std::optional(median(known));
}

/// The best median of a window that ends at or before each step.
Values best_windows(const Values& values, std::size_t window, bool least) {
  Values out(values.size());
  for (std::size_t end = window; end <= values.size(); ++end) {
    const auto here = median_of(values, end - window, end);
    auto& best = out[end - 1] = end > 1 ? out[end - 2] : std::nullopt;
    if (here && std::isfinite(*here) && (!best || (least ? *here < *best : *here > *best))) best = here;
  }
  return out;
}

bool is_wrong(double value, double limit, bool above) { return !(above ? value <= limit : value >= limit); }

std::optional<double> planned(const WatchBaseline& baseline, WatchedMetric metric) {
  return metric == WatchedMetric::step_s         ? baseline.plan_step_s
         : metric == WatchedMetric::tokens_per_s ? baseline.plan_tokens_per_s
                                                 : baseline.plan_mfu;
}

}  // namespace

RunSignals::RunSignals(const TrainingObservation& run, const WatchRules& rules, const WatchBaseline& baseline)
    : run_(run), rules_(rules), baseline_(baseline) {
  for (const SignalRule& rule : rules.signals) {
    Values& values = values_.emplace_back();
    for (const TrainingStep& step : run.steps) values.push_back(value_of(step, rule.metric));
    const bool needed = rule.of == WatchReference::best;
    best_.push_back(needed ? best_windows(values, static_cast<std::size_t>(rules.window), rule.above) : Values{});
  }
}

/// Of the steps before `before`, the suspects; the best may be among those until `until`.
std::optional<double> RunSignals::reference(std::size_t rule, std::size_t before, std::size_t until) const {
  const SignalRule& r = rules_.signals[rule];
  switch (r.of) {
    case WatchReference::value:
      return 1;
    case WatchReference::best:
      return until > 0 ? best_[rule][until - 1] : std::nullopt;
    case WatchReference::recent: {
      const auto window = static_cast<std::size_t>(rules_.window);
      return before >= window ? median_of(values_[rule], before - window, before) : std::nullopt;
    }
    case WatchReference::plan:
      return planned(baseline_, r.metric);
  }
  return {};
}

/// What the limit of a rule is to be multiplied with on fewer nodes.
double RunSignals::expected(const SignalRule& rule) const {
  if (rule.of != WatchReference::best && rule.of != WatchReference::plan) return 1;
  return rule.metric == WatchedMetric::step_s         ? baseline_.step_factor
         : rule.metric == WatchedMetric::tokens_per_s ? 1 / baseline_.step_factor
                                                      : 1;
}

std::optional<WatchSignal> RunSignals::silence(const SignalRule& rule, std::size_t steps, double now_unix_s) const {
  if (run_.ended && steps == run_.steps.size()) return {};
  const double since = steps == 0 ? run_.last_sign_unix_s : run_.steps[steps - 1].unix_s;
  const double silent_s = now_unix_s - since;
  const std::size_t window = std::min(steps, static_cast<std::size_t>(rules_.window));
  std::vector<double> usual;
  for (std::size_t i = steps - window; i < steps; ++i) usual.push_back(run_.steps[i].step_s);
  const double reference = rule.of == WatchReference::value || usual.empty() ? 1 : median(usual);
  const double limit = steps == 0 ? 10 * rule.least_s : std::max(rule.least_s, rule.factor * reference);
  if (silent_s <= limit) return {};
  const std::int64_t last = steps == 0 ? 0 : run_.steps[steps - 1].step;
  return WatchSignal{rule.name, rule.metric, silent_s, reference, limit, last, last};
}

std::vector<WatchSignal> RunSignals::after(std::size_t steps, double now_unix_s) const {
  std::vector<WatchSignal> out;
  for (std::size_t i = 0; i < rules_.signals.size(); ++i) {
    const SignalRule& rule = rules_.signals[i];
    if (rule.metric == WatchedMetric::silence) {
      if (const auto found = silence(rule, steps, now_unix_s)) out.push_back(*found);
      continue;
    }
    const auto judged = static_cast<std::size_t>(rule.steps);
    if (steps < judged) continue;
    const std::size_t first = steps - judged;
    const auto reference = this->reference(i, first, steps);
    if (!reference || !std::isfinite(*reference)) continue;
    const double limit = rule.factor * *reference, now = limit * expected(rule);
    const bool wrong = std::all_of(values_[i].begin() + static_cast<std::ptrdiff_t>(first),
                                   values_[i].begin() + static_cast<std::ptrdiff_t>(steps),
                                   [&](const auto& value) { return value && is_wrong(*value, now, rule.above); });
    if (wrong)
      out.push_back({rule.name, rule.metric, median_of(values_[i], first, steps).value(), *reference, limit,
                     run_.steps[first].step, run_.steps[steps - 1].step});
  }
  return out;
}

std::optional<bool> RunSignals::mended(const WatchSignal& signal, double since_unix_s, std::int64_t steps) const {
  const auto fresh = std::find_if(run_.steps.begin(), run_.steps.end(),
                                  [&](const TrainingStep& s) { return s.unix_s > since_unix_s; });
  const std::size_t all = run_.steps.size(), judged = static_cast<std::size_t>(steps);
  const auto count = static_cast<std::size_t>(run_.steps.end() - fresh);
  if (signal.metric == WatchedMetric::silence) return count > 0 ? std::optional(true) : std::nullopt;
  const auto rule = std::find_if(rules_.signals.begin(), rules_.signals.end(),
                                 [&](const SignalRule& r) { return r.name == signal.rule; });
  if (rule == rules_.signals.end() || count < judged) return {};
  const auto value = median_of(values_[static_cast<std::size_t>(rule - rules_.signals.begin())], all - judged, all);
  if (!value) return {};
  return !is_wrong(*value, signal.limit * expected(*rule), rule->above);
}

}  // namespace wt
