// Steps in files of metrics: JSON lines, and tables that Weights & Biases exports. Each trainer has its own names.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/job_logs/job_log.hpp"

namespace wt {

/// Whether a line is a JSON object with a metric that one trainer writes.
bool is_metric_line(const std::string& line);

class MetricSteps {
 public:
  /// None where the object has no step. Throws Error{usage} for other text than an object, and a value that is no
  /// number.
  std::optional<LoggedStep> json_line(const std::string& line, const std::string& where);
  /// Whether a line is one JSON object; NaN, which Python writes, counts as null.
  static bool is_object(const std::string& line);

  struct Table {
    std::vector<std::pair<std::int64_t, LoggedStep>> steps;  ///< with their lines
    std::int64_t broken = 0;                                 ///< rows that cannot be read
  };
  /// A CSV file with columns as "Step" and "NAME - throughput(tps)". Throws Error{usage} as read_csv does, and for
  /// columns of several runs.
  Table csv(const std::filesystem::path& file);

  bool memory_is_reserved() const { return memory_is_reserved_; }

  JobTrainer trainer() const { return trainer_.value_or(JobTrainer::windtunnel); }

 private:
  void take(LoggedStep& step, const std::string& name, double value, const std::string& where);
  /// After all metrics of a step.
  void finish(LoggedStep& step) const;
  std::optional<JobTrainer> trainer_;
  bool memory_is_reserved_ = false;
};

}  // namespace wt
