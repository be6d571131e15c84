// What the rules look at of a job's log.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/job_logs/job_log.hpp"
#include "planner/watch/rules.hpp"

namespace wt {

/// A logged step. Empty: the log does not say it.
struct WatchedLine {
  std::int64_t step = 0;
  double unix_s = 0;                      ///< when the watch read it
  std::optional<double> interval_s = {};  ///< since the line before, by the clock of the lines or their step times
  std::optional<double> step_s = {};
  std::optional<double> tokens_per_s = {};  ///< of a GPU or of all of them, the same in all lines
  std::optional<double> mfu = {};
  std::optional<double> memory_bytes = {};
  std::optional<double> loss = {};       ///< NaN where the log says so
  std::optional<double> grad_norm = {};  ///< likewise
};
std::optional<double> value_of(const WatchedLine& line, WatchedMetric metric);

struct WatchedLog {
  std::vector<WatchedLine> lines = {};  ///< by ascending step
  double now_unix_s = 0;
  double last_sign_unix_s = 0;  ///< of the last step; without steps, of the file
  bool ended = false;           ///< the log says that the job has ended
};

/// Up to which place of the log the watch had read at this time.
struct LogReading {
  std::int64_t places = 0;
  double unix_s = 0;
};

/// `readings`: ascending, at least one, the last one of all that `log` has.
WatchedLog watched_log(const JobLog& log, const std::vector<LogReading>& readings, double now_unix_s);

/// Rules for a log that has tokens per second in place of step times: `step_s` above a factor of a reference is
/// `tokens_per_s` below its inverse.
std::vector<SignalRule> by_rate(std::vector<SignalRule> rules);

/// Which metrics of the rules the log does not have, and which rules therefore see nothing; "" = none.
std::string says_missing(const WatchedLog& log, const std::vector<SignalRule>& rules);

}  // namespace wt
