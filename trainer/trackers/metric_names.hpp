// The names under which trackers show what a line of metrics.jsonl says: Composer 0.32.1's where it has one
// (composer/trainer/trainer.py, callbacks/speed_monitor.py, lr_monitor.py, memory_monitor.py, optimizer_monitor.py),
// and those of LLM Foundry's losses. Values are of one step; Composer's throughputs are means over 100.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/trackers/tracker.hpp"

namespace wt {

/// What turns a value of the line into the one that is shown.
enum class MetricScale {
  none,
  giga,          ///< in units of 1e9
  per_rank,      ///< over the ranks
  inverse,       ///< 1 / value
  batch,         ///< batch / value: sequences a second from a step's time
  times_batch,   ///< sequences that so many steps have trained on
  times_tokens,  ///< tokens, likewise
};

struct MetricName {
  const char* key;         ///< of metrics.jsonl
  const char* composer;    ///< {} stands for the optimizer's class, or for the number of a list's entry from 1 on
  const char* prometheus;  ///< without "windtunnel_"; empty: not shown there
  const char* help;
  MetricScale scale = MetricScale::none;
};

/// All of them, but for the total of the losses, which is no key.
std::span<const MetricName> metric_names();

/// Of one line of evaluations.jsonl, a set of eval_loader: Composer's metrics/eval/LanguageCrossEntropy and
/// LanguagePerplexity, with the set's label behind "eval" where it is another word. `unix_s`: when, if the line does
/// not say.
TrackedStep tracked_evaluation(const nlohmann::json& line, double unix_s);
/// Of one line of metrics.jsonl. Keys that are not there, and numbers that are of no row, are left out.
TrackedStep tracked_step(const RunSpec& run, const nlohmann::json& line);

}  // namespace wt
