#include "planner/job_logs/trainer_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"

namespace wt {
namespace {

constexpr const char* kHistory = "log_history";

/// As transformers renames them for its trackers (rewrite_logs of integration_utils.py).
nlohmann::json as_tracked(const nlohmann::json& entry) {
  nlohmann::json out;
  for (const auto& [name, value] : entry.items())
    if (name == "step")
      out["train/global_step"] = value;
    else if (value.is_number() || value.is_null())
      out[name.starts_with("eval_") ? "eval/" + name.substr(5) : "train/" + name] = value;
  return out;
}

/// What a file without times of steps can say: seconds of the whole run.
std::string whole_run(const nlohmann::json& history) {
  for (const auto& entry : history)
    if (entry.is_object() && entry.contains("train_loss") && entry.contains("train_runtime") &&
        entry["train_runtime"].is_number() && entry.contains("step") && entry["step"].is_number_integer())
      return fmt::format(", only {:.4g} s for all {} steps with start, evaluations and saves in them",
                         entry["train_runtime"].get<double>(), entry["step"].get<std::int64_t>());
  return "";
}

}  // namespace

bool is_trainer_state_line(const std::string& line) { return line.find("\"log_history\"") != std::string::npos; }

PlacedSteps trainer_state_steps(const std::string& text, const std::string& origin, MetricSteps& metrics) {
  const nlohmann::json state = python_json(text);
  if (state.is_discarded())
    throw_usage("{}: found {}, needs a whole trainer_state.json; one that is cut cannot be read", origin,
                why_discarded(text));
  if (!state.is_object() || !state.contains(kHistory) || !state[kHistory].is_array())
    throw_usage("{}: found no list {}, needs a trainer_state.json", origin, kHistory);
  PlacedSteps out;
  std::int64_t entry = 0;
  for (const nlohmann::json& logged : state[kHistory])
    if (++entry; logged.is_object())
      if (const auto step = metrics.row(as_tracked(logged), fmt::format("{}: entry {}", origin, entry)))
        out.emplace_back(entry, *step);
  if (std::ranges::none_of(out, [](const auto& placed) { return placed.second.clock_s.has_value(); }))
    throw_usage(
        "{}: found no time of a step{}; needs the Trainer's argument include_num_input_tokens_seen, by which it logs "
        "seconds, or its standard output with the progress bar, or its files for TensorBoard",
        origin, whole_run(state[kHistory]));
  return out;
}

}  // namespace wt
