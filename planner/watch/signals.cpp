#include "planner/watch/signals.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "configs/base/quantity.hpp"
#include "configs/base/statistics.hpp"

namespace wt {
namespace {

using Values = std::vector<std::optional<double>>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::optional<double> value_of(const TrainingStep& step, WatchedMetric metric) {
  switch (metric) {
    case WatchedMetric::mfu:
      return step.mfu;
    case WatchedMetric::tokens_per_s:
      return step.tokens_per_s;
    case WatchedMetric::step_s:
      return step.step_s;
    case WatchedMetric::memory:
      return step.peak_tensor_bytes;
    case WatchedMetric::loss:
      return step.loss;
    case WatchedMetric::grad_norm:
      return step.grad_norm;
    case WatchedMetric::silence:
      return {};
  }
  return {};
}

std::optional<double> interval_of(const TrainingStep& step) { return step.step_s; }
std::optional<double> interval_of(const WatchedLine& line) { return line.interval_s; }

/// A loss is in nats; of a gradient norm, which is a product, its logarithm is.
double in_nats(double value, WatchedMetric metric) { return metric == WatchedMetric::loss ? value : std::log(value); }
double from_nats(double value, WatchedMetric metric) { return metric == WatchedMetric::loss ? value : std::exp(value); }

/// Steps without a value, and gradients that are 0, leave the state as it is.
std::vector<RiseState> rises_of(const Values& values, const SignalRule& rule) {
  RiseDetector detector(rule);
  std::vector<std::size_t> steps;  // of the detector's values
  std::vector<RiseState> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(out.empty() ? RiseState{} : out.back());
    if (!values[i] || (rule.metric == WatchedMetric::grad_norm && *values[i] <= 0)) continue;
    steps.push_back(i);
    out.back() = detector.add(in_nats(*values[i], rule.metric));
    if (out.back().first) out.back().first = steps[*out.back().first];
  }
  return out;
}

/// Median of the last `count` known values of the first `steps`. NaN if one is not finite.
double last_median_of(const Values& values, std::size_t steps, std::size_t count) {
  std::vector<double> known;
  for (std::size_t i = steps; i > 0 && known.size() < count; --i)
    if (values[i - 1]) known.push_back(*values[i - 1]);
  const bool finite = std::ranges::all_of(known, [](double value) { return std::isfinite(value); });
  return finite && !known.empty() ? median(known) : kNaN;
}

/// Median of values[from, until). Empty unless all are known; NaN if one is not finite.
std::optional<double> median_of(const Values& values, std::size_t from, std::size_t until) {
  std::vector<double> known;
  for (std::size_t i = from; i < until; ++i) {
    if (!values[i]) return {};
    if (!std::isfinite(*values[i])) return kNaN;
    known.push_back(*values[i]);
  }
  return known.empty() ? std::nullopt : std::optional(median(known));
}

/// For each step, the best median of a window up to it.
Values best_windows(const Values& values, std::size_t window, bool least) {
  Values out(values.size());
  for (std::size_t end = window; end <= values.size(); ++end) {
    const auto here = median_of(values, end - window, end);
    auto& best = out[end - 1] = end > 1 ? out[end - 2] : std::nullopt;
    if (here && std::isfinite(*here) && (!best || (least ? *here < *best : *here > *best))) best = here;
  }
  return out;
}

/// The first of the consecutive non-finite values that end right before `at`.
std::size_t first_bad_before(const Values& values, std::size_t at) {
  while (at > 0 && values[at - 1] && !std::isfinite(*values[at - 1])) --at;
  return at;
}

bool is_wrong(double value, double limit, bool above) { return !(above ? value <= limit : value >= limit); }

std::optional<double> planned(const WatchBaseline& baseline, WatchedMetric metric) {
  return metric == WatchedMetric::step_s         ? baseline.plan_step_s
         : metric == WatchedMetric::tokens_per_s ? baseline.plan_tokens_per_s
                                                 : baseline.plan_mfu;
}

}  // namespace
std::string value_text(double value, WatchedMetric metric) {
  if (metric == WatchedMetric::memory) return format_bytes(value);
  if (metric == WatchedMetric::step_s || metric == WatchedMetric::silence) return format_seconds(value);
  return fmt::format("{:.4g}", value);
}

std::string says(const WatchSignal& s) {
  const std::string now = value_text(s.value, s.metric);
  if (s.metric == WatchedMetric::silence) return fmt::format("no step since step {}, for {}", s.last_step, now);
  const std::string known = std::isfinite(s.reference) ? "before it was " + value_text(s.reference, s.metric)
                                                       : std::string("and no level was known before");
  return fmt::format("{} is {} since step {}, {}", to_string(s.metric), now, s.first_step, known);
}

template <typename Step>
RunSignals::RunSignals(const std::vector<Step>& steps, const WatchRules& rules, const WatchBaseline& baseline)
    : rules_(rules), baseline_(baseline) {
  for (const Step& step : steps) points_.push_back({step.step, step.unix_s, interval_of(step)});
  for (const SignalRule& rule : rules.signals) {
    Values& values = values_.emplace_back();
    for (const Step& step : steps) values.push_back(value_of(step, rule.metric));
    const bool best = rule.of == WatchReference::best, before = rule.of == WatchReference::before;
    best_.push_back(best ? best_windows(values, static_cast<std::size_t>(rules.window), rule.above) : Values{});
    rises_.push_back(before ? rises_of(values, rule) : std::vector<RiseState>{});
  }
}

RunSignals::RunSignals(const TrainingObservation& run, const WatchRules& rules, const WatchBaseline& baseline)
    : RunSignals(run.steps, rules, baseline) {
  diverged_ = run.diverged, ended_ = run.ended;
  now_unix_s_ = run.now_unix_s, last_sign_unix_s_ = run.last_sign_unix_s;
}

RunSignals::RunSignals(const WatchedLog& log, const WatchRules& rules) : RunSignals(log.lines, rules, {}) {
  ended_ = log.ended, now_unix_s_ = log.now_unix_s, last_sign_unix_s_ = log.last_sign_unix_s;
}

/// `before`: the first suspect step. The best may be among the steps up to `until`.
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
    case WatchReference::before:  // in the state of the rise
      return {};
  }
  return {};
}

/// Factor on a rule's limit while the run has fewer nodes: each has a larger share of the work and of the state.
double RunSignals::expected(const SignalRule& rule) const {
  if (rule.of != WatchReference::best && rule.of != WatchReference::plan) return 1;
  return rule.metric == WatchedMetric::step_s || rule.metric == WatchedMetric::memory ? baseline_.step_factor
         : rule.metric == WatchedMetric::tokens_per_s                                 ? 1 / baseline_.step_factor
                                                                                      : 1;
}

std::optional<WatchSignal> RunSignals::silence(const SignalRule& rule, std::size_t steps, double now_unix_s) const {
  if (ended_ && steps == points_.size()) return {};
  const double since = steps == 0 || steps == points_.size() ? last_sign_unix_s_ : points_[steps - 1].unix_s;
  const double silent_s = now_unix_s - since;
  const std::size_t window = std::min(steps, static_cast<std::size_t>(rules_.window));
  std::vector<double> usual;
  for (std::size_t i = steps - window; i < steps; ++i)
    if (points_[i].interval_s) usual.push_back(*points_[i].interval_s);
  const double reference = rule.of == WatchReference::value || usual.empty() ? 1 : median(usual);
  const bool unknown = steps == 0 || (usual.empty() && rule.of != WatchReference::value);
  const double limit = unknown ? 10 * rule.least_s : std::max(rule.least_s, rule.factor * reference);
  if (silent_s <= limit) return {};
  const std::int64_t last = steps == 0 ? 0 : points_[steps - 1].step;
  return WatchSignal{rule.name, rule.metric, silent_s, reference, limit, last, last};
}

/// Whether the next step diverged twice. The first time may be a transient fault, and a restart repeats the step.
bool RunSignals::diverged(std::size_t steps) const {
  return steps == points_.size() && diverged_ && diverged_->times > 1;
}

/// Of `before`.
std::optional<WatchSignal> RunSignals::risen(std::size_t i, std::size_t steps) const {
  const SignalRule& rule = rules_.signals[i];
  const bool diverged = this->diverged(steps);
  static const RiseState kNoValue;
  const RiseState& state = steps > 0 ? rises_[i][steps - 1] : kNoValue;
  if (!state.stands && !diverged) return {};
  WatchSignal out{
      rule.name, rule.metric, kNaN, from_nats(state.level, rule.metric), from_nats(state.limit, rule.metric), 0, 0};
  if (!diverged) out.value = last_median_of(values_[i], steps, static_cast<std::size_t>(rule.steps));
  out.first_step = state.first ? points_[*state.first].step : diverged_->step;
  out.last_step = diverged ? diverged_->step : points_[steps - 1].step;
  return out;
}

std::optional<WatchSignal> RunSignals::judged(std::size_t i, std::size_t steps) const {
  const SignalRule& rule = rules_.signals[i];
  if (rule.of == WatchReference::before) return risen(i, steps);
  const bool diverged = is_loss_metric(rule.metric) && this->diverged(steps);
  const std::size_t needed = diverged ? 0 : static_cast<std::size_t>(rule.steps);
  if (steps < needed) return {};
  std::size_t first = first_bad_before(values_[i], steps - needed);
  const auto reference = this->reference(i, first, steps);
  if (!reference || !std::isfinite(*reference)) return {};
  const double limit = rule.factor * *reference, now = limit * expected(rule);
  const auto wrong = [&](const auto& value) { return value && is_wrong(*value, now, rule.above); };
  const auto end = values_[i].begin() + static_cast<std::ptrdiff_t>(steps);
  if (!std::all_of(end - static_cast<std::ptrdiff_t>(needed), end, wrong)) return {};
  while (first > 0 && wrong(values_[i][first - 1])) --first;
  WatchSignal out{rule.name, rule.metric, kNaN, *reference, limit, 0, 0};
  if (!diverged) out.value = median_of(values_[i], steps - needed, steps).value();
  out.first_step = first < steps ? points_[first].step : diverged_->step;
  out.last_step = diverged ? diverged_->step : points_[steps - 1].step;
  return out;
}

std::vector<WatchSignal> RunSignals::after(std::size_t steps, double now_unix_s) const {
  std::vector<WatchSignal> out;
  for (std::size_t i = 0; i < rules_.signals.size(); ++i) {
    const SignalRule& rule = rules_.signals[i];
    const auto found = rule.metric == WatchedMetric::silence ? silence(rule, steps, now_unix_s) : judged(i, steps);
    if (found) out.push_back(*found);
  }
  if (diverged(steps) && std::ranges::any_of(out, is_loss_metric, &WatchSignal::metric))
    std::erase_if(out, [](const WatchSignal& signal) { return signal.metric == WatchedMetric::silence; });
  return out;
}

std::vector<WatchSignal> RunSignals::lost_since(double unix_s) const {
  std::vector<WatchSignal> out;
  for (std::size_t i = 0; i < rules_.signals.size(); ++i)
    for (std::size_t steps = 1; is_loss_metric(rules_.signals[i].metric) && steps <= points_.size(); ++steps)
      if (points_[steps - 1].unix_s > unix_s)
        if (const auto found = judged(i, steps)) {
          out.push_back(*found);
          break;
        }
  return out;
}

std::optional<bool> RunSignals::recovered(const WatchSignal& signal, double since_unix_s, std::int64_t steps) const {
  const auto fresh = std::ranges::find_if(points_, [&](const Point& point) { return point.unix_s > since_unix_s; });
  const std::size_t all = points_.size(), judged = static_cast<std::size_t>(steps);
  const auto count = static_cast<std::size_t>(points_.end() - fresh);
  if (signal.metric == WatchedMetric::silence) return count > 0 ? std::optional(true) : std::nullopt;
  if (is_loss_metric(signal.metric) && diverged(all) && diverged_->unix_s > since_unix_s) return false;
  const auto rule = std::ranges::find_if(rules_.signals, [&](const SignalRule& r) { return r.name == signal.rule; });
  if (rule == rules_.signals.end() || count < judged) return {};
  const auto value = median_of(values_[static_cast<std::size_t>(rule - rules_.signals.begin())], all - judged, all);
  if (!value) return {};
  return !is_wrong(*value, signal.limit * expected(*rule), rule->above);
}

}  // namespace wt
