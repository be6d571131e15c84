// A service that shows a run's metrics during training. It may be slow, down or wrong without affecting the run
// (tracker_thread.hpp); metrics.jsonl is the complete record.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace wt {

struct MetricName;  // metric_names.hpp

struct TrackedValue {
  const MetricName* metric = nullptr;
  std::string name = {};  ///< Composer's name
  double value = 0;       ///< in the unit of the name; NaN if the step's value is not a number
};

struct TrackedStep {
  std::int64_t step = 0;
  double unix_s = 0;            ///< end of the step
  bool first_of_start = false;  ///< if an earlier start logged this or later steps, they are repeated
  std::vector<TrackedValue> values = {};
};

enum class TrackedEnd { finished, failed, asked_to_end };

/// One start of a run, as described to all of its trackers.
struct TrackedRun {
  std::string name = {};
  std::filesystem::path folder = {};                                 ///< of the run
  std::int64_t done = 0;                                             ///< steps before this start
  std::vector<std::pair<std::string, std::string>> parameters = {};  ///< the run file, flattened
  std::string run_file = {};                                         ///< the same as a file
  double start_unix_s = 0;
};

/// The tracker will never accept this.
class TrackerRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Called by one thread. Every call may throw: TrackerRefused, or anything else for a temporary problem, after which
/// the same call is repeated. No call may take longer than about kTrackerCall_s.
class Tracker {
 public:
  virtual ~Tracker() = default;
  /// For messages: "mlflow at https://host". No secrets.
  virtual std::string name() const = 0;
  /// The first call; repeated until it succeeds.
  virtual void begin(const TrackedRun& run) = 0;
  /// Steps in the order of their execution. After an exception some of them may have been logged.
  virtual void log(std::span<const TrackedStep> steps) = 0;
  virtual void end(TrackedEnd how) = 0;
};

inline constexpr double kTrackerCall_s = 10;

}  // namespace wt
