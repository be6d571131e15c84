#include "planner/job_logs/metric_files.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"
#include "configs/base/number.hpp"
#include "planner/job_logs/step_lines.hpp"
#include "sim/measurements/csv.hpp"

namespace wt {
namespace {

struct Metric {
  const char* name;
  std::optional<JobTrainer> trainer;         ///< that alone writes it
  std::optional<double> LoggedStep::*field;  ///< none: only a sign of the trainer
  double unit;
  bool sign = true;  ///< else others may write the name, too: then it counts after a sign of the trainer
};

using enum JobTrainer;
/// The first one that is there counts: W&B's own step counts calls in some trainers.
const char* const kStepNames[] = {"train/global_step", "trainer/global_step", "_step", "step", "Step"};
/// When a row was written: a clock of W&B and of TensorBoard.
constexpr const char* kWritten = "_timestamp";
/// Sequences of a step, by Megatron.
constexpr const char* kBatch = "batch-size";
/// Of Hugging Face's Trainer since it began, where it counts tokens. Its clock goes on while it evaluates.
constexpr const char* kSinceStart = "train/train_runtime";

/// The whole run's, in the Trainer's last row: with start, evaluations and saves.
constexpr const char* kWholeRun = "train/train_loss";

/// "eval/runtime", "eval/NAME_runtime": seconds of one evaluation of Hugging Face's Trainer.
bool is_evaluation(const std::string& name) { return name.starts_with("eval/") && name.ends_with("runtime"); }

const Metric kMetrics[] = {
    {"throughput(tps)", torchtitan, &LoggedStep::tokens_per_s_per_gpu, 1},
    {"mfu(%)", torchtitan, &LoggedStep::mfu, 0.01},
    {"memory/max_reserved(GiB)", torchtitan, &LoggedStep::memory_bytes, kGiB_bytes},
    {"loss_metrics/global_avg_loss", torchtitan, &LoggedStep::loss, 1},
    {"iteration-time", megatron, &LoggedStep::step_s, 1},
    {"lm loss", megatron, &LoggedStep::loss, 1},
    {"mem-max-allocated-bytes", megatron, &LoggedStep::memory_bytes, 1},
    {"throughput", megatron, &LoggedStep::flops_per_gpu, 1e12, false},
    {kBatch, megatron, nullptr, 1, false},
    {"train_step_timing in s", megatron, &LoggedStep::step_s, 1},
    {"reduced_train_loss", megatron, &LoggedStep::loss, 1},
    {"TFLOPS_per_GPU", megatron, &LoggedStep::flops_per_gpu, 1e12},
    {"throughput/tflops/device", megatron, &LoggedStep::flops_per_gpu, 1e12},
    {"tps", automodel, &LoggedStep::tokens_per_s, 1},
    {"tps_per_gpu", automodel, nullptr, 1},  // leaves tensor and pipeline ranks out
    {"mem", automodel, &LoggedStep::memory_bytes, kGiB_bytes},
    {"throughput/device/mfu", composer, &LoggedStep::mfu, 1},
    {"loss/train/total", composer, &LoggedStep::loss, 1},
    {"throughput/device/tokens_per_sec", {}, &LoggedStep::tokens_per_s_per_gpu, 1},
    {"memory/peak_reserved_mem", {}, &LoggedStep::memory_bytes, 1e9},
    {"step_s", windtunnel, &LoggedStep::step_s, 1},
    {"tokens_per_s", windtunnel, &LoggedStep::tokens_per_s, 1},
    {"peak_tensor_bytes", windtunnel, &LoggedStep::memory_bytes, 1},
    {"train/loss", hugging_face, &LoggedStep::loss, 1},
    {"train/grad_norm", hugging_face, &LoggedStep::grad_norm, 1},
    {"train/num_input_tokens_seen", hugging_face, &LoggedStep::tokens, 1},
    {kSinceStart, hugging_face, nullptr, 1},
    {kWritten, {}, nullptr, 1},
    {"loss", {}, &LoggedStep::loss, 1},
    {"grad_norm", {}, &LoggedStep::grad_norm, 1},
    {"grad-norm", {}, &LoggedStep::grad_norm, 1},
    {"l2_norm/grad/global", {}, &LoggedStep::grad_norm, 1},
    {"mfu", {}, &LoggedStep::mfu, 1},
};

const Metric* metric_of(const std::string& name) {
  const auto* const found = std::ranges::find_if(kMetrics, [&](const Metric& m) { return name == m.name; });
  return found == std::end(kMetrics) ? nullptr : found;
}

double number_of(const nlohmann::json& value, const std::string& where, const std::string& name) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value.is_string()) return number_or_nan_of_log(value.get<std::string>(), where, name);
  if (!value.is_number()) throw_usage("{}: {}: found no number, needs one", where, name);
  return value.get<double>();
}

/// A time or rate below or at 0 says nothing, and one that is no number.
bool says_something(const Metric& metric, double value) {
  return metric.field == &LoggedStep::loss || metric.field == &LoggedStep::grad_norm || value > 0;
}

/// A line's JSON; discarded where it is none, or longer than any step's.
nlohmann::json object_of(const std::string& line) {
  constexpr std::size_t kLongest = 1 << 20;
  return line.size() > kLongest ? nlohmann::json(nlohmann::json::value_t::discarded) : python_json(line);
}

}  // namespace

nlohmann::json python_json(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    std::string_view number;
    if (!in_string && (c == 'N' || c == 'I' || c == '-'))
      for (const std::string_view word : {"NaN", "-Infinity", "Infinity"})
        if (text.compare(i, word.size(), word) == 0) number = word;
    if (c == '"') in_string = !in_string;
    out += number.empty() ? std::string(1, c) : "null";
    if (in_string && c == '\\' && i + 1 < text.size()) out += text[++i];
    if (!number.empty()) i += number.size() - 1;
  }
  return lax_json(out);
}

bool is_metric_line(const std::string& line) {
  if (line.find('{') == std::string::npos) return false;
  const nlohmann::json object = object_of(line.starts_with("\xEF\xBB\xBF") ? line.substr(3) : line);
  return object.is_object() && std::ranges::any_of(object.items(), [](const auto& entry) {
           const Metric* metric = metric_of(entry.key());
           return metric != nullptr && metric->trainer && metric->sign;
         });
}

bool MetricSteps::knows(const std::string& name) {
  return metric_of(name) != nullptr || is_evaluation(name) || name == kWholeRun;
}

bool MetricSteps::is_object(const std::string& line) { return object_of(line).is_object(); }

bool MetricSteps::take(LoggedStep& step, const std::string& name, double value, const std::string& where) {
  if ((name == kSinceStart || (name == kWritten && !step.clock_s)) && std::isfinite(value))
    step.clock_s = value - evaluated_s_;
  const Metric* const metric = metric_of(name);
  if (metric == nullptr || (!metric->sign && trainer_ != metric->trainer)) return false;
  if (metric->trainer && trainer_ && trainer_ != metric->trainer)
    throw_usage("{}: found a metric of {} beside metrics of {}; needs those of one job", where,
                to_string(*metric->trainer), to_string(*trainer_));
  if (metric->trainer) trainer_ = metric->trainer;
  if (constexpr double kMost = 1e12; name == kBatch && value >= 1 && value < kMost)
    step.global_batch = static_cast<std::int64_t>(value);
  if (metric->field != nullptr && says_something(*metric, value)) {
    step.*metric->field = metric->unit * value;
    if (metric->field == &LoggedStep::memory_bytes) memory_is_reserved_ = name.find("reserved") != std::string::npos;
  }
  return metric->field != nullptr && metric->field != &LoggedStep::tokens;  // which stands beside evaluations, too
}

void MetricSteps::finish(LoggedStep& step) const {
  if (trainer_ == automodel && step.mfu) *step.mfu /= 100;  // it writes percent
}

std::optional<LoggedStep> MetricSteps::row(const nlohmann::json& object, const std::string& where) {
  LoggedStep out;
  bool known = false;
  const bool whole_run = object.contains(kWholeRun);
  for (const bool signs : {true, false})  // which trainer it is comes first
    for (const auto& [name, value] : object.items()) {
      const Metric* const metric = metric_of(name);
      if (metric != nullptr && metric->sign == signs && !(whole_run && name == kSinceStart))
        known = take(out, name, number_of(value, where, name), where) || known;
    }
  for (const auto& [name, value] : object.items())  // after the step of its row
    if (is_evaluation(name) && value.is_number() && value > 0) evaluated_s_ += value.get<double>();
  finish(out);
  for (const char* const name : kStepNames)
    if (known && object.contains(name) && object[name].is_number_integer()) {
      out.step = step_of_log(object[name].dump(), where);
      return out;
    }
  return std::nullopt;
}

std::optional<LoggedStep> MetricSteps::json_line(const std::string& line, const std::string& where) {
  const nlohmann::json object = object_of(line);
  if (!object.is_object()) throw_usage("{}: found no JSON object, needs one a line", where);
  return row(object, where);
}

MetricSteps::Table MetricSteps::csv(const std::filesystem::path& file) {
  std::vector<std::string> columns, names;
  std::set<std::string> runs;
  const std::vector<std::string> header = read_csv_header(file);
  for (const std::string& column : header) {
    const std::size_t dash = column.rfind(" - ");
    const std::string name = dash == std::string::npos ? column : column.substr(dash + 3);
    if (!knows(name)) continue;
    if (dash != std::string::npos) runs.insert(column.substr(0, dash));
    columns.push_back(column), names.push_back(name);
  }
  if (runs.size() > 1) throw_usage("{}: found columns of {} runs, needs those of one", file.string(), runs.size());
  const auto* const step_column =
      std::ranges::find_if(kStepNames, [&](const char* name) { return std::ranges::count(header, name) > 0; });
  if (step_column == std::end(kStepNames) || columns.empty())
    throw_usage("{}: found no column of steps, or none that a known trainer writes; needs Step and, for example, {}",
                file.string(), kMetrics[0].name);
  columns.emplace_back(*step_column);
  const CsvTable table = read_csv(file, columns, OtherColumns::ignored);
  Table out;
  out.broken = std::ssize(table.broken);
  for (const CsvRow& row : table.rows) {
    const std::string where = fmt::format("{}: line {}", file.string(), row.line);
    nlohmann::json object = nlohmann::json::object();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& cell = row.cells[i];
      if (cell.find(',') != std::string::npos)
        throw_usage("{}: {}: found a comma in a number, needs a point before decimals", where, names[i]);
      if (!cell.empty()) object[names[i]] = number_or_nan_of_log(cell, where, names[i]);
    }
    if (const std::string& step = row.cells.back(); !step.empty()) object[*step_column] = step_of_log(step, where);
    if (const auto step = this->row(object, where)) out.steps.emplace_back(row.line, *step);
  }
  return out;
}

}  // namespace wt
