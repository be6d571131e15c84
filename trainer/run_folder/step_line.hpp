// A line of metrics.jsonl: what the trainer writes of a step, and what readers take of it. Other keys of a line
// (samples, what was left out) are for people and for the drill.
#pragma once
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "configs/base/json_reader.hpp"

namespace wt {

/// What the trainer writes.
struct StepFigures {
  std::int64_t step = 0;
  double loss = 0, aux_loss = 0, z_loss = 0, grad_norm = 0, learning_rate = 0;
  double step_s = 0, tokens_per_s = 0, exposed_communication_s = 0;
  double peak_tensor_bytes = 0;     ///< of the rank that writes
  std::int64_t resident_bytes = 0;  ///< likewise
  double unix_s = 0;                ///< now
  std::optional<double> expert_imbalance = {}, mfu = {};
};
nlohmann::json to_json(const StepFigures& figures);

/// What a report takes, also of replayed.jsonl: 72 bytes, for runs of 1e6 steps and more. NaN: the line does not say,
/// or it says null.
struct StepLine {
  static constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  std::int64_t step = 0;
  double unix_s = 0;  ///< when it ended
  double step_s = 0;
  double loss = kNothing, grad_norm = kNothing, tokens_per_s = kNothing, mfu = kNothing, exposed_s = kNothing,
         peak_bytes = kNothing;
};
/// Lists are skipped: a line of a large batch has thousands of sample ids. Throws Error{usage} naming `where`.
StepLine step_line(const std::string& text, const std::string& where);
/// Any line of the run's files, without its lists. Throws Error{usage} where it is no object.
nlohmann::json without_lists(const std::string& text, const std::string& where);

/// What a watcher takes; step, unix_s, step_s and loss must be there.
struct TrainingStep {
  std::int64_t step = 0;
  double unix_s = 0;  ///< when it ended
  double step_s = 0;
  double loss = 0;  ///< NaN where the line says null
  std::optional<double> exposed_communication_s = {};
  std::optional<double> mfu = {};
  /// How uneven the router is: rows of the most loaded expert rank over their mean, by the tokens of one rank ...
  std::optional<double> expert_imbalance = {};
  /// ... or the balancing loss, proportional to sum(load share x mean probability), which rises with it (Fedus et al.
  /// 2022, eq. 4). Only ratios within a run are used.
  std::optional<double> aux_loss = {};
  std::optional<double> grad_norm = {};          ///< NaN where the line says null
  std::optional<double> tokens_per_s = {};       ///< of all ranks together
  std::optional<double> peak_tensor_bytes = {};  ///< of the rank that wrote the line
};
TrainingStep training_step(const JsonReader& line);
nlohmann::json to_json(const TrainingStep& step);

/// Throws Error{usage} where steps do not rise.
void check_rising(std::int64_t before, std::int64_t step, const std::string& where);

}  // namespace wt
