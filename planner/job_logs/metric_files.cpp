#include "planner/job_logs/metric_files.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
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
};

using enum JobTrainer;
const Metric kMetrics[] = {
    {"throughput(tps)", torchtitan, &LoggedStep::tokens_per_s_per_gpu, 1},
    {"mfu(%)", torchtitan, &LoggedStep::mfu, 0.01},
    {"memory/max_reserved(GiB)", torchtitan, &LoggedStep::memory_bytes, kGiB_bytes},
    {"loss_metrics/global_avg_loss", torchtitan, &LoggedStep::loss, 1},
    {"iteration-time", megatron, &LoggedStep::step_s, 1},
    {"lm loss", megatron, &LoggedStep::loss, 1},
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
    {"loss", {}, &LoggedStep::loss, 1},
    {"mfu", {}, &LoggedStep::mfu, 1},
};

const Metric* metric_of(const std::string& name) {
  const auto* const found = std::ranges::find_if(kMetrics, [&](const Metric& m) { return name == m.name; });
  return found == std::end(kMetrics) ? nullptr : found;
}

const std::set<std::string> kStepNames{"step", "_step", "Step", "trainer/global_step"};

double number_of(const nlohmann::json& value, const std::string& where, const std::string& name) {
  if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
  if (value.is_string()) return number_or_nan_of_log(value.get<std::string>(), where, name);
  if (!value.is_number()) throw_usage("{}: {}: found no number, needs one", where, name);
  return value.get<double>();
}

/// A time or rate below or at 0 says nothing.
bool says_something(const Metric& metric, double value) { return metric.field == &LoggedStep::loss || value > 0; }

/// A line's JSON; discarded where it is none, or longer than any step's.
nlohmann::json object_of(const std::string& line) {
  constexpr std::size_t kLongest = 1 << 20;
  static const std::regex kNan(R"(:\s*-?(?:NaN|Infinity)\b)");
  if (line.size() > kLongest) return nlohmann::json(nlohmann::json::value_t::discarded);
  const bool nan =
      line.size() < 4000 && (line.find("NaN") != std::string::npos || line.find("Infinity") != std::string::npos);
  return lax_json(nan ? std::regex_replace(line, kNan, ": null") : line);
}

}  // namespace

bool is_metric_line(const std::string& line) {
  if (line.find('{') == std::string::npos) return false;
  const nlohmann::json object = object_of(line.starts_with("\xEF\xBB\xBF") ? line.substr(3) : line);
  return object.is_object() && std::ranges::any_of(object.items(), [](const auto& entry) {
           const Metric* metric = metric_of(entry.key());
           return metric != nullptr && metric->trainer;
         });
}

bool MetricSteps::is_object(const std::string& line) { return object_of(line).is_object(); }

void MetricSteps::take(LoggedStep& step, const std::string& name, double value, const std::string& where) {
  const Metric* const metric = metric_of(name);
  if (metric == nullptr) return;
  if (metric->trainer && trainer_ && trainer_ != metric->trainer)
    throw_usage("{}: found a metric of {} beside metrics of {}; needs those of one job", where,
                to_string(*metric->trainer), to_string(*trainer_));
  if (metric->trainer) trainer_ = metric->trainer;
  if (metric->field == nullptr || !says_something(*metric, value)) return;
  step.*metric->field = metric->unit * value;
  if (metric->field == &LoggedStep::memory_bytes) memory_is_reserved_ = name.find("reserved") != std::string::npos;
}

void MetricSteps::finish(LoggedStep& step) const {
  if (trainer_ == automodel && step.mfu) *step.mfu /= 100;  // it writes percent
}

std::optional<LoggedStep> MetricSteps::json_line(const std::string& line, const std::string& where) {
  const nlohmann::json object = object_of(line);
  if (!object.is_object()) throw_usage("{}: found no JSON object, needs one a line", where);
  LoggedStep out;
  bool numbered = false;
  for (const auto& [name, value] : object.items()) {
    if (kStepNames.contains(name) && value.is_number_integer()) {
      out.step = step_of_log(value.dump(), where);
      numbered = true;
    }
    if (metric_of(name) != nullptr) take(out, name, number_of(value, where, name), where);
  }
  finish(out);
  return numbered ? std::optional(out) : std::nullopt;
}

MetricSteps::Table MetricSteps::csv(const std::filesystem::path& file) {
  std::string step_column;
  std::vector<std::string> columns, names;
  std::set<std::string> runs;
  for (const std::string& column : read_csv_header(file)) {
    if (kStepNames.contains(column)) step_column = column;
    const std::size_t dash = column.rfind(" - ");
    const std::string name = dash == std::string::npos ? column : column.substr(dash + 3);
    if (metric_of(name) == nullptr) continue;
    if (dash != std::string::npos) runs.insert(column.substr(0, dash));
    columns.push_back(column), names.push_back(name);
  }
  if (runs.size() > 1) throw_usage("{}: found columns of {} runs, needs those of one", file.string(), runs.size());
  if (step_column.empty() || columns.empty())
    throw_usage("{}: found no column of steps, or none that a known trainer writes; needs Step and, for example, {}",
                file.string(), kMetrics[0].name);
  columns.push_back(step_column);
  const CsvTable table = read_csv(file, columns, OtherColumns::ignored);
  Table out;
  out.broken = std::ssize(table.broken);
  for (const CsvRow& row : table.rows) {
    const std::string where = fmt::format("{}: line {}", file.string(), row.line);
    LoggedStep step{.step = step_of_log(row.cells.back(), where)};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string& cell = row.cells[i];
      if (cell.find(',') != std::string::npos)
        throw_usage("{}: {}: found a comma in a number, needs a point before decimals", where, names[i]);
      if (!cell.empty()) take(step, names[i], number_or_nan_of_log(cell, where, names[i]), where);
    }
    finish(step);
    out.steps.emplace_back(row.line, step);
  }
  return out;
}

}  // namespace wt
