// All trackers of a run, on rank 0.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "configs/files/run.hpp"
#include "trainer/trackers/tracker_thread.hpp"

namespace wt {

class Trackers {
 public:
  /// Those of run.loggers; `done`: steps before this start. Throws Error{usage} where the environment does not fit the
  /// loggers; that a tracker does not answer is no error.
  Trackers(const RunSpec& run, const std::filesystem::path& folder, std::int64_t done,
           const TrackerThreadOptions& options = {});

  /// A line of metrics.jsonl, or of evaluations.jsonl, which has a label.
  void step(const nlohmann::json& line);
  /// The next step may have been done before.
  void goes_on() { first_of_start_ = true; }
  /// All of them together take at most so long.
  void end(TrackedEnd how, double at_most_s = kTrackerEnd_s);

  static constexpr double kTrackerEnd_s = 20;

 private:
  const RunSpec run_;
  std::vector<std::unique_ptr<TrackerThread>> threads_;
  bool first_of_start_ = true;
};

/// Throws what the constructor of Trackers throws, and starts nothing.
void check_loggers(const LoggersSpec& loggers);

}  // namespace wt
