// What `windtunnel watch` takes for trouble, and how far it may go without a human. A strict YAML file; presets in
// configs/watch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace wt {

/// What is watched: columns of metrics.jsonl, and the time since its last line.
enum class WatchedMetric { mfu, tokens_per_s, step_s, loss, grad_norm, silence };
std::string to_string(WatchedMetric metric);

/// Loss and gradients: what is lost with them is lost from a step on.
bool tells_of_loss(WatchedMetric metric);
std::optional<WatchedMetric> metric_from(const std::string& word);

/// The value that a metric is compared with.
enum class WatchReference {
  value,   ///< none: the limit is given as it is
  best,    ///< the run's best median over `window` steps
  recent,  ///< the median of the `window` steps before those that are judged
  plan,    ///< what plan.json says; no signal where there is no plan
};
std::string to_string(WatchReference reference);

/// A metric is on the wrong side of its limit for `steps` steps.
struct SignalRule {
  std::string name;
  WatchedMetric metric = WatchedMetric::step_s;
  bool above = true;  ///< wrong above the limit, else below it
  double factor = 1;  ///< limit = factor x reference
  WatchReference of = WatchReference::best;
  std::int64_t steps = 1;  ///< of silence always 1
  double least_s = 0;      ///< of silence: so long at least; before the first step ten times as long
};

/// How far a restart goes back once the loss is lost. PaLM went back about 100 steps and left out 200 to 500 batches
/// (Chowdhery et al. 2022, section 5.1).
struct RollbackRule {
  std::int64_t margin = 100;               ///< steps that the checkpoint is older than the first bad one, at least
  std::optional<std::int64_t> skip = 200;  ///< batches left out after it, or up to the bad step's; none = one
};

struct WatchRules {
  double every_s = 5;       ///< between two looks
  std::int64_t window = 8;  ///< steps of a median
  std::vector<SignalRule> signals;
  bool sweep_undecided = false;  ///< slower steps that nothing explains: stop and sweep, else tell a human
  double sure = 0.99;            ///< a node is cordoned from this confidence on
  double most_excluded = 0.25;   ///< share of the nodes that may be cordoned without a human
  std::int64_t restarts = 3;     ///< for one cause, without progress between them
  RollbackRule rollback;
  std::int64_t verify_steps = 16;  ///< after a start, before the metric is judged
  double verify_s = 1800;          ///< they must be done in this time
};

/// A preset of configs/watch or a file. Throws Error{usage} with file, line, found and allowed: unknown keys, two rules
/// of one name, rules for metrics that a plan does not have.
WatchRules read_watch_rules(const std::string& name_or_file);

}  // namespace wt
