// What shows a run's metrics elsewhere while it trains. A tracker may be slow, down or wrong: none of this stops a run
// (tracker_thread.hpp), and metrics.jsonl stays the truth.
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
  std::string name = {};  ///< Composer's
  double value = 0;       ///< in the unit of the name; NaN where the step's was no number
};

struct TrackedStep {
  std::int64_t step = 0;
  double unix_s = 0;            ///< when it ended
  bool first_of_start = false;  ///< this one and later ones that an earlier start logged are done again
  std::vector<TrackedValue> values = {};
};

enum class TrackedEnd { finished, failed, asked_to_end };

/// Of one start of a run, as it is told to all of its trackers.
struct TrackedRun {
  std::string name = {};
  std::filesystem::path folder = {};                                 ///< of the run
  std::int64_t done = 0;                                             ///< steps before this start
  std::vector<std::pair<std::string, std::string>> parameters = {};  ///< the run file, flattened
  std::string run_file = {};                                         ///< the same as a file
  double start_unix_s = 0;
};

/// The tracker will not take this, now or later.
class TrackerRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Called by one thread. Every call may throw: TrackerRefused, or anything else for "not now", after which the same
/// call comes again. No call takes longer than about kTrackerCall_s.
class Tracker {
 public:
  virtual ~Tracker() = default;
  /// For messages: "mlflow at https://host". No secrets.
  virtual std::string name() const = 0;
  /// Before all others, until it returns.
  virtual void begin(const TrackedRun& run) = 0;
  /// In the order in which the steps were done. Those of a call that has thrown may have been logged in part.
  virtual void log(std::span<const TrackedStep> steps) = 0;
  virtual void end(TrackedEnd how) = 0;
};

inline constexpr double kTrackerCall_s = 10;

}  // namespace wt
