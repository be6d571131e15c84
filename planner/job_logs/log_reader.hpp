// Reads a log of a job line by line: standard output, or metrics as JSON lines.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "planner/job_logs/logged_steps.hpp"
#include "planner/job_logs/metric_files.hpp"
#include "planner/job_logs/step_lines.hpp"

namespace wt {

class LogReader {
 public:
  /// `file` is for errors.
  explicit LogReader(std::filesystem::path file) : file_(std::move(file)) {}

  /// The next line, without its end. Throws Error{usage} naming it, as read_job_log does.
  void line(const std::string& text);
  /// A last line without an end: what it says may be half of it. JSON counts if it is whole.
  void cut(const std::string& text);
  /// The log goes on in another file, or from the beginning of this one. Lines count from 1 again.
  void goes_on_in_new_file();

  /// What it says so far; no steps are no error. Of Hugging Face's logs `losses` gives a step for each logged loss,
  /// else for each half minute of the progress bar.
  JobLog log(bool losses = false) const;

 private:
  enum class Kind { unknown, metrics, output };
  void decide(bool is_last);
  void read(const std::string& text, bool cut);
  void metric(std::string text, bool cut);
  void output(const std::string& text, bool cut);
  void bare(const std::string& text, bool cut);
  std::string where() const;

  std::filesystem::path file_;
  Kind kind_ = Kind::unknown;
  std::vector<std::string> head_;  ///< lines before the kind was known
  std::int64_t line_ = 0;          ///< lines of the file that were read
  std::int64_t places_ = 0;        ///< lines of all files, and parts that a progress bar wrote over
  LoggedSteps steps_;
  StepLines step_lines_;
  MetricSteps metrics_;
  std::int64_t odd_ = 0, first_odd_ = 0;
  bool ends_within_line_ = false, says_cut_ = false, ended_ = false;
};

}  // namespace wt
