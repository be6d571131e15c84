// Which metrics of a run are on the wrong side of their limits. Pure: the same signals for the same steps.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/health/training.hpp"
#include "planner/watch/rules.hpp"

namespace wt {

/// What the metrics of a run are held against, apart from the run itself.
struct WatchBaseline {
  std::optional<double> plan_step_s = {}, plan_mfu = {}, plan_tokens_per_s = {};
  /// Step time that is expected now over that of the whole cluster: above 1 after a restart on fewer nodes.
  double step_factor = 1;
};

/// A rule that fired.
struct WatchSignal {
  std::string rule;
  WatchedMetric metric = WatchedMetric::step_s;
  double value = 0;      ///< median of the steps that are judged; NaN where one of them is no number
  double reference = 0;  ///< what it is compared with
  double limit = 0;      ///< on the whole cluster: without WatchBaseline::step_factor
  std::int64_t first_step = 0, last_step = 0;  ///< of all that were wrong in a row
};

class RunSignals {
 public:
  RunSignals(const TrainingObservation& run, const WatchRules& rules, const WatchBaseline& baseline);

  /// As they were after the first `steps` steps, at this time. Of a run that has ended there is no silence, and none of
  /// one that diverged twice at the next step: then its loss is lost.
  std::vector<WatchSignal> after(std::size_t steps, double now_unix_s) const;
  std::vector<WatchSignal> now() const { return after(run_.steps.size(), run_.now_unix_s); }
  /// Those of loss and gradients after any of the steps since this time, each rule's first: a jump stays in the state.
  std::vector<WatchSignal> lost_since(double unix_s) const;
  /// Whether the metric of a signal is on the right side again, by its median over the last `steps` steps since this
  /// time against the limit of then; none while there are fewer. Silence is over with one step, and a run that diverges
  /// anew is not mended.
  std::optional<bool> mended(const WatchSignal& signal, double since_unix_s, std::int64_t steps) const;

 private:
  std::optional<double> reference(std::size_t rule, std::size_t before, std::size_t until) const;
  double expected(const SignalRule& rule) const;
  bool diverged(std::size_t steps) const;
  std::optional<WatchSignal> judged(std::size_t rule, std::size_t steps) const;
  std::optional<WatchSignal> silence(const SignalRule& rule, std::size_t steps, double now_unix_s) const;

  const TrainingObservation& run_;
  const WatchRules& rules_;
  WatchBaseline baseline_;
  std::vector<std::vector<std::optional<double>>> values_;  ///< of each rule's metric, a step each
  std::vector<std::vector<std::optional<double>>> best_;    ///< of the windows that end at or before this step
};

}  // namespace wt
