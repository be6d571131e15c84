// A tracker on its own thread, behind a bounded queue: training never waits for it, and its errors do not end the run.
// Steps that it refuses, or that exceed the queue while it is down, are dropped and counted; metrics.jsonl has all of
// them.
#pragma once
#include <cstdint>
#include <memory>
#include <thread>

#include "trainer/trackers/tracker.hpp"

namespace wt {

struct TrackerThreadOptions {
  std::size_t capacity = 20'000;                ///< queued steps; 20 MB with twenty values each
  std::size_t batch = 200;                      ///< steps per call
  double flush_s = 10;                          ///< between calls; Composer's flush_interval
  double least_pause_s = 1, most_pause_s = 60;  ///< between attempts; doubles with each failure
};

/// Totals so far.
struct TrackerCounts {
  std::int64_t logged = 0, dropped = 0;  ///< steps
  std::int64_t failures = 0;             ///< calls that failed
};

class TrackerThread {
 public:
  TrackerThread(std::unique_ptr<Tracker> tracker, TrackedRun run, const TrackerThreadOptions& options = {});
  /// Like end(asked_to_end, 0): drops queued steps.
  ~TrackerThread();
  TrackerThread(const TrackerThread&) = delete;
  TrackerThread& operator=(const TrackerThread&) = delete;

  /// Returns at once. If the queue is full, drops its oldest step.
  void step(TrackedStep step);
  /// The first half of end(), so that several threads can end in parallel.
  void ask_to_end(TrackedEnd how, double at_most_s);
  /// Logs queued steps and ends the tracker's run, within the time limit; then reports missing steps on stderr. A
  /// hanging call is abandoned with its thread. Later calls do nothing.
  void end(TrackedEnd how, double at_most_s);
  TrackerCounts counts() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;  // until end()
};

}  // namespace wt
