// The rules of `windtunnel watch`: what counts as a problem, and how far the watch may go without a human. A strict
// YAML file; presets in configs/watch.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wt {

/// Columns of metrics.jsonl or of a job's log, and the time since its last step.
enum class WatchedMetric { mfu, tokens_per_s, step_s, memory, loss, grad_norm, silence };
std::string to_string(WatchedMetric metric);

/// Loss and gradients: a bad value stays in the state from then on.
bool is_loss_metric(WatchedMetric metric);
std::optional<WatchedMetric> metric_from(const std::string& word);

/// The reference of a metric's limit.
enum class WatchReference {
  value,   ///< none: `factor` is the limit
  best,    ///< the run's best median over `window` steps
  recent,  ///< the median of the `window` steps before the judged ones
  before,  ///< of loss and gradients: the level before they rose, see SignalRule::level
  plan,    ///< the value in plan.json; no signal without a plan
};
std::string to_string(WatchReference reference);

/// A signal fires when a metric is beyond its limit for `steps` steps.
struct SignalRule {
  std::string name;
  WatchedMetric metric = WatchedMetric::step_s;
  bool above = true;  ///< bad above the limit, else below it
  double factor = 1;  ///< limit = factor x reference; of `before`: limit = level + at least this [nats]
  WatchReference of = WatchReference::best;
  std::int64_t steps = 1;  ///< always 1 for silence
  double least_s = 0;      ///< silence: the smallest limit; before the first step ten times as long
  /// `before`: the limit is also this many robust standard deviations above the level.
  double deviations = 0;
  /// `before`: the level is a median of this many values, the lowest one of the last `within` values.
  std::int64_t level = 0, within = 0;
};

/// How far a restart goes back after the loss diverged. PaLM went back about 100 steps and skipped 200 to 500 batches
/// (Chowdhery et al. 2022, section 5.1).
struct RollbackRule {
  std::int64_t margin = 100;               ///< least steps between the checkpoint and the first bad step
  std::optional<std::int64_t> skip = 200;  ///< batches skipped after it, at least up to the bad step; empty = one batch
};

struct WatchRules {
  double every_s = 5;       ///< between looks
  std::int64_t window = 8;  ///< steps in a median
  std::vector<SignalRule> signals;
  bool sweep_undecided = false;  ///< for slower steps without an explanation: stop and sweep; else tell a human
  double sure = 0.99;            ///< least confidence for cordoning a node
  double most_excluded = 0.25;   ///< largest share of nodes cordoned without a human
  std::int64_t restarts = 3;     ///< most restarts for one cause without progress
  RollbackRule rollback;
  std::int64_t verify_steps = 16;  ///< steps after a start before the metric is judged
  double verify_s = 1800;          ///< the time in which they must be done
};

/// Reads a preset of configs/watch or a file. Throws Error{usage} with file, line, found and allowed: for unknown keys,
/// two rules with one name, and rules whose metric has no such reference.
WatchRules read_watch_rules(const std::string& name_or_file);

}  // namespace wt
