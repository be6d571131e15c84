// Follows a job's log while the job writes it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "configs/base/growing_file.hpp"
#include "planner/job_logs/log_reader.hpp"
#include "planner/job_logs/reread_log.hpp"

namespace wt {

class LogFollower {
 public:
  explicit LogFollower(const std::filesystem::path& file);

  /// Reads the lines that are new; a last line without an end waits. What has no lines is read as a whole where it has
  /// changed. Returns what happened to the file, in sentences: truncated, replaced, gone. Throws as LogReader and
  /// RereadLog; then nothing more can be read.
  std::vector<std::string> look();
  /// What the log says so far. Of lines of Hugging Face's a step for each logged loss.
  JobLog log() const { return whole_ ? whole_->log() : reader_.log(true); }
  /// Whether the last look found a line, or a step of what has no lines.
  bool grew() const { return grew_; }

 private:
  bool look_at_lines(std::vector<std::string>& said);

  GrowingFile lines_;
  LogReader reader_;
  std::optional<RereadLog> whole_;  ///< of a log without lines
  bool there_ = true, grew_ = false;
};

}  // namespace wt
