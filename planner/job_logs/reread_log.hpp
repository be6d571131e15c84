// A log that can only be read as a whole, while the job writes it: event files of TensorBoard, a run of Weights &
// Biases, trainer_state.json, a CSV export. It is read again whenever one of its files has changed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "planner/job_logs/job_log.hpp"

namespace wt {

class RereadLog {
 public:
  explicit RereadLog(std::filesystem::path log) : path_(std::move(log)) {}

  /// Reads what has changed. False: none of its files is there now. A file may be read while it is written, so that
  /// what cannot be read is an error only if it has not changed at the next look. Throws Error{usage} then.
  bool look();
  /// What was read last. Of a step that was there before, with the same loss, the place stays.
  const JobLog& log() const { return log_; }
  /// Whether the last look found a step.
  bool grew() const { return grew_; }

 private:
  using Stamp = std::map<std::filesystem::path, std::pair<std::uintmax_t, std::filesystem::file_time_type>>;
  Stamp stamp() const;
  void take(JobLog log);

  std::filesystem::path path_;
  JobLog log_;
  Stamp read_;                        ///< of what was read last, also without success
  std::optional<std::string> error_;  ///< of the last reading
  bool read_any_ = false, grew_ = false;
};

}  // namespace wt
