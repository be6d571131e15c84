// Compares the metrics of a run, or of a job's log, with their limits. Pure: the same steps give the same signals.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/health/training.hpp"
#include "planner/watch/rise_detector.hpp"
#include "planner/watch/rules.hpp"
#include "planner/watch/watched_log.hpp"

namespace wt {

/// External references for the metrics of a run.
struct WatchBaseline {
  std::optional<double> plan_step_s = {}, plan_mfu = {}, plan_tokens_per_s = {};
  /// Expected step time now over that of the whole cluster: above 1 after a restart on fewer nodes.
  double step_factor = 1;
};

/// A rule that fired.
struct WatchSignal {
  std::string rule;
  WatchedMetric metric = WatchedMetric::step_s;
  double value = 0;      ///< median of the judged steps; NaN if one of them is not finite
  double reference = 0;  ///< what it is compared with; NaN: no level was known yet
  double limit = 0;      ///< for the whole cluster: without WatchBaseline::step_factor; infinite without a level
  std::int64_t first_step = 0, last_step = 0;  ///< of the unbroken row of bad steps
};

/// A value of a metric, with its unit.
std::string value_text(double value, WatchedMetric metric);
/// "loss is 4.1 since step 31, before it was 2.5"; memory and times with their units.
std::string says(const WatchSignal& signal);

class RunSignals {
 public:
  RunSignals(const TrainingObservation& run, const WatchRules& rules, const WatchBaseline& baseline);
  RunSignals(const WatchedLog& log, const WatchRules& rules);

  /// The signals after the first `steps` steps, at this time. A run that has ended is not silent. A run that diverged
  /// twice at the next step has a signal for its loss.
  std::vector<WatchSignal> after(std::size_t steps, double now_unix_s) const;
  std::vector<WatchSignal> now() const { return after(points_.size(), now_unix_s_); }
  /// Signals of loss and gradients after any step since this time, the first of each rule. A jump of the loss stays in
  /// the state even if the metric recovers.
  std::vector<WatchSignal> lost_since(double unix_s) const;
  /// Whether the signal's metric is within its limit again: the median over the last `steps` steps since this time
  /// against the limit at the signal. Empty until `steps` steps are done. One step ends a silence. A run that diverges
  /// again has not recovered.
  std::optional<bool> recovered(const WatchSignal& signal, double since_unix_s, std::int64_t steps) const;

 private:
  struct Point {
    std::int64_t step = 0;
    double unix_s = 0;
    std::optional<double> interval_s;  ///< to the point before
  };
  template <typename Step>
  RunSignals(const std::vector<Step>& steps, const WatchRules& rules, const WatchBaseline& baseline);
  std::optional<double> reference(std::size_t rule, std::size_t before, std::size_t until) const;
  double expected(const SignalRule& rule) const;
  bool diverged(std::size_t steps) const;
  std::optional<WatchSignal> judged(std::size_t rule, std::size_t steps) const;
  std::optional<WatchSignal> risen(std::size_t rule, std::size_t steps) const;
  std::optional<WatchSignal> silence(const SignalRule& rule, std::size_t steps, double now_unix_s) const;

  const WatchRules& rules_;
  WatchBaseline baseline_;
  std::vector<Point> points_;
  std::optional<DivergedStep> diverged_;
  double now_unix_s_ = 0, last_sign_unix_s_ = 0;
  bool ended_ = false;
  std::vector<std::vector<std::optional<double>>> values_;  ///< by rule and step: the metric
  std::vector<std::vector<std::optional<double>>> best_;  ///< by rule and step: best median of a window up to the step
  std::vector<std::vector<RiseState>> rises_;             ///< by rule and step; of `before`
};

}  // namespace wt
