// The part of a job's log that says how fast the job is, and whether the log can be that of the job at all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "planner/job_logs/job_log.hpp"

namespace wt {

/// Logged steps without the first two windows after each start, which have compilation, warm-up and caches in them.
struct SteadySteps {
  std::int64_t first = 0, last = 0;  ///< steps
  std::int64_t windows = 0;          ///< logged lines with a time
  double step_s = 0;                 ///< median
  double low_s = 0, high_s = 0;      ///< 10 % and 90 % quantiles of the windows
  double drift = 0;                  ///< median of the last quarter over that of the first, minus 1; 0 below 20 windows
  std::int64_t slow = 0;             ///< windows more than 1.5 times the median
  std::optional<double> memory_bytes = {};     ///< the highest peak
  std::optional<double> flops_per_token = {};  ///< as the trainer counts them
  std::optional<double> mfu = {};              ///< as the trainer prints it, median
  std::optional<double> tokens_per_step = {};  ///< of all GPUs, as the trainer counts them, median
};

/// Seconds of a step by a logged line. None where the line has no time.
std::optional<double> step_seconds(const LoggedStep& step, const RunSpec& run);

/// Throws Error{usage} with `log_file`: fewer than three windows with a time; a global batch, tokens of a step, FLOPs
/// of a token, or a clock that are not the run's, so that the log is another job's.
SteadySteps steady_steps(const JobLog& log, const RunSpec& run, const std::string& log_file);

}  // namespace wt
