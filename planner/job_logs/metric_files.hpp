// Steps in files of metrics. Each trainer has its own names for them, which are the same in JSON lines, in TensorBoard,
// and in what Weights & Biases keeps.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/job_logs/job_log.hpp"

namespace wt {

/// Whether a line is a JSON object with a metric that one trainer writes.
bool is_metric_line(const std::string& line);

/// JSON as Python writes it, where NaN and infinities count as null. Discarded where it is none.
nlohmann::json python_json(const std::string& text);

/// Steps of a file with their places in it: lines, or records.
using PlacedSteps = std::vector<std::pair<std::int64_t, LoggedStep>>;

struct MetricRecords {
  PlacedSteps steps;
  bool cut = false;  ///< the file ends inside a record, as while it is written
};

class MetricSteps {
 public:
  /// Whether row() reads what has this name.
  static bool knows(const std::string& name);
  /// Metrics of one moment by name, and the step under one of its names. None where it has no step, or no metric that
  /// is known. Throws Error{usage} for a metric that is no number, and one of another trainer than those before.
  std::optional<LoggedStep> row(const nlohmann::json& object, const std::string& where);
  /// The same of a line of text. Throws for other text than an object, too.
  std::optional<LoggedStep> json_line(const std::string& line, const std::string& where);
  /// Whether a line is one JSON object.
  static bool is_object(const std::string& line);

  struct Table {
    PlacedSteps steps;
    std::int64_t broken = 0;  ///< rows that cannot be read
  };
  /// A CSV file with columns as "Step" and "NAME - throughput(tps)". Throws Error{usage} as read_csv does, and for
  /// columns of several runs.
  Table csv(const std::filesystem::path& file);

  bool memory_is_reserved() const { return memory_is_reserved_; }

  JobTrainer trainer() const { return trainer_.value_or(JobTrainer::windtunnel); }

 private:
  /// Whether it is a metric of a step.
  bool take(LoggedStep& step, const std::string& name, double value, const std::string& where);
  /// After all metrics of a step.
  void finish(LoggedStep& step) const;
  std::optional<JobTrainer> trainer_;
  bool memory_is_reserved_ = false;
  double evaluated_s_ = 0;  ///< so far, by Hugging Face's Trainer
};

}  // namespace wt
