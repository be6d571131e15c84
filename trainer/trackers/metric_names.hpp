// The names under which trackers show values of metrics.jsonl: Composer 0.32.1's where it has one
// (composer/trainer/trainer.py, callbacks/speed_monitor.py, lr_monitor.py, memory_monitor.py, optimizer_monitor.py),
// and those of LLM Foundry's losses. Values are of one step, while Composer's throughputs are means over 100.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "configs/files/run.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

/// Conversion from the line's value to the shown one.
enum class MetricScale {
  none,
  giga,          ///< in units of 1e9
  per_rank,      ///< divided by the ranks
  inverse,       ///< 1 / value
  batch,         ///< batch / value: sequences a second from a step's time
  times_batch,   ///< sequences trained on in that many steps
  times_tokens,  ///< tokens, likewise
};

struct MetricName {
  const char* key;         ///< in metrics.jsonl
  const char* composer;    ///< {} is replaced by the optimizer's class, or by a list entry's number, from 1
  const char* prometheus;  ///< without "windtunnel_"; empty: not exported to Prometheus
  const char* help;
  MetricScale scale = MetricScale::none;
};

/// All metrics, except the total of the losses, which has no key.
std::span<const MetricName> metric_names();

/// Values of one line of evaluations.jsonl (one set of eval_loader): Composer's metrics/eval/LanguageCrossEntropy and
/// LanguagePerplexity, with the set's label after "eval" unless it is "eval". `unix_s`: the time, if the line has none.
TrackedStep tracked_evaluation(const nlohmann::json& line, double unix_s);
/// Values of one line of metrics.jsonl. Missing keys, and numbers without a metric, are left out.
TrackedStep tracked_step(const RunSpec& run, const nlohmann::json& line);

}  // namespace wt
