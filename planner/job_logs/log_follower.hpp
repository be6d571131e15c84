// Follows a job's log while the job writes it.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "configs/base/growing_file.hpp"
#include "planner/job_logs/log_reader.hpp"

namespace wt {

class LogFollower {
 public:
  /// Throws Error{usage} for a format without lines.
  explicit LogFollower(const std::filesystem::path& file);

  /// Reads the lines that are new; a last line without an end waits. Returns what happened to the file, in sentences:
  /// truncated, replaced, gone. Throws as LogReader; then nothing more can be read.
  std::vector<std::string> look();
  /// What the log says so far. Of Hugging Face's logs a step for each logged loss.
  JobLog log() const { return reader_.log(true); }
  /// Whether the last look found a line.
  bool grew() const { return grew_; }

 private:
  std::filesystem::path file_;
  GrowingFile lines_;
  LogReader reader_;
  bool there_ = true, grew_ = false;
};

}  // namespace wt
