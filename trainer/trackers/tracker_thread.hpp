// A tracker on a thread of its own, behind a queue of bounded length: whoever trains never waits for it, and nothing
// that it does ends the run. What it will not take, or what does not fit into the queue while it is down, is dropped
// and counted; metrics.jsonl has it all.
#pragma once
#include <cstdint>
#include <memory>
#include <thread>

#include "trainer/trackers/tracker.hpp"

namespace wt {

struct TrackerThreadOptions {
  std::size_t capacity = 20'000;                ///< steps that wait; 20 MB with twenty values each
  std::size_t batch = 200;                      ///< steps in a call
  double flush_s = 10;                          ///< between calls, Composer's flush_interval
  double least_pause_s = 1, most_pause_s = 60;  ///< between attempts: doubled at each failure
};

/// So far.
struct TrackerCounts {
  std::int64_t logged = 0, dropped = 0;  ///< steps
  std::int64_t failures = 0;             ///< calls that failed
};

class TrackerThread {
 public:
  TrackerThread(std::unique_ptr<Tracker> tracker, TrackedRun run, const TrackerThreadOptions& options = {});
  /// As end(asked_to_end, 0): what waits is dropped.
  ~TrackerThread();
  TrackerThread(const TrackerThread&) = delete;
  TrackerThread& operator=(const TrackerThread&) = delete;

  /// Returns at once. Where the queue is full the oldest step that waits is dropped.
  void step(TrackedStep step);
  /// The first half of end(): several threads end side by side.
  void ask_to_end(TrackedEnd how, double at_most_s);
  /// Logs what waits and ends the tracker's run, for at most so long; then says on stderr what is missing, if anything
  /// is. A call that hangs is left behind with its thread. Later calls do nothing.
  void end(TrackedEnd how, double at_most_s);
  TrackerCounts counts() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;  // until end()
};

}  // namespace wt
