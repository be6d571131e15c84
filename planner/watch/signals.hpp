// Compares a run's metrics with their limits. Pure: the same steps give the same signals.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/health/training.hpp"
#include "planner/watch/rules.hpp"

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
  double value = 0;                            ///< median of the judged steps; NaN if one of them is not finite
  double reference = 0;                        ///< what it is compared with
  double limit = 0;                            ///< for the whole cluster: without WatchBaseline::step_factor
  std::int64_t first_step = 0, last_step = 0;  ///< of the unbroken row of bad steps
};

class RunSignals {
 public:
  RunSignals(const TrainingObservation& run, const WatchRules& rules, const WatchBaseline& baseline);

  /// The signals after the first `steps` steps, at this time. A run that has ended is not silent. A run that diverged
  /// twice at the next step has a signal for its loss.
  std::vector<WatchSignal> after(std::size_t steps, double now_unix_s) const;
  std::vector<WatchSignal> now() const { return after(run_.steps.size(), run_.now_unix_s); }
  /// Signals of loss and gradients after any step since this time, the first of each rule. A jump of the loss stays in
  /// the state even if the metric recovers.
  std::vector<WatchSignal> lost_since(double unix_s) const;
  /// Whether the signal's metric is within its limit again: the median over the last `steps` steps since this time
  /// against the limit at the signal. Empty until `steps` steps are done. One step ends a silence. A run that diverges
  /// again has not recovered.
  std::optional<bool> recovered(const WatchSignal& signal, double since_unix_s, std::int64_t steps) const;

 private:
  std::optional<double> reference(std::size_t rule, std::size_t before, std::size_t until) const;
  double expected(const SignalRule& rule) const;
  bool diverged(std::size_t steps) const;
  std::optional<WatchSignal> judged(std::size_t rule, std::size_t steps) const;
  std::optional<WatchSignal> silence(const SignalRule& rule, std::size_t steps, double now_unix_s) const;

  const TrainingObservation& run_;
  const WatchRules& rules_;
  WatchBaseline baseline_;
  std::vector<std::vector<std::optional<double>>> values_;  ///< by rule and step: the metric
  std::vector<std::vector<std::optional<double>>> best_;  ///< by rule and step: best median of a window up to the step
};

}  // namespace wt
