// A host that fails and restarts, with a single process: a run of days on SimGrid. SimGrid decides whether work ends
// before the host fails. Like Engine, a thin adapter around SimGrid 3.32, for run_in_child only.
#pragma once
#include <functional>
#include <memory>

namespace wt {

class FailingHost {
 public:
  /// Calls `program` in a new simulation, which ends when `program` returns.
  static void simulate(const std::function<void(FailingHost&)>& program);
  ~FailingHost();
  FailingHost(const FailingHost&) = delete;
  FailingHost& operator=(const FailingHost&) = delete;

  /// Seconds since the simulation began.
  double now() const;
  /// The host is up from now on, and fails after `failure_s` (infinite: never). Earlier background work is lost.
  void start(double failure_s);
  /// Cancels the coming failure.
  void stop();
  /// Does work. False: the host failed before its end; now() is that time.
  bool work(double seconds);
  /// Starts work in the background, one at a time. It is lost if the host fails.
  void start_behind(double seconds);
  /// Waits for the background work. False: the host failed. True at once if there is none.
  bool wait_behind();
  /// Whether background work was started and the last one is done.
  bool behind_done() const;
  /// Time in which the host is not used.
  void idle(double seconds);

 private:
  FailingHost();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wt
