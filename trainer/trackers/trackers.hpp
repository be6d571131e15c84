// All trackers of a run, on rank 0.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "configs/files/run.hpp"
#include "trainer/trackers/tracker_thread.hpp"

namespace wt {

class Trackers {
 public:
  /// Starts the trackers of run.loggers; `done`: steps before this start. Throws Error{usage} where the environment
  /// contradicts the loggers. A tracker that does not answer is no error.
  Trackers(const RunSpec& run, const std::filesystem::path& folder, std::int64_t done,
           const TrackerThreadOptions& options = {});

  /// Passes on a line of metrics.jsonl, or of evaluations.jsonl, which has a label.
  void step(const nlohmann::json& line);
  /// Call after a return to an earlier step: the next step may be a repeated one.
  void goes_on() { first_of_start_ = true; }
  /// The time limit is for all of them together.
  void end(TrackedEnd how, double at_most_s = kTrackerEnd_s);

  static constexpr double kTrackerEnd_s = 20;

 private:
  const RunSpec run_;
  std::vector<std::unique_ptr<TrackerThread>> threads_;
  bool first_of_start_ = true;
};

/// Throws as the constructor of Trackers does, without starting anything.
void check_loggers(const LoggersSpec& loggers);

}  // namespace wt
