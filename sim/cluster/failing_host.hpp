// A host that fails and comes back, and the one process that uses it: what a run of days is on SimGrid. SimGrid decides
// whether work ends before the host fails. Like Engine, a thin adapter around SimGrid 3.32 for run_in_child only.
#pragma once
#include <functional>
#include <memory>

namespace wt {

class FailingHost {
 public:
  /// Calls `program` in a simulation of its own, which ends when it returns.
  static void simulate(const std::function<void(FailingHost&)>& program);
  ~FailingHost();
  FailingHost(const FailingHost&) = delete;
  FailingHost& operator=(const FailingHost&) = delete;

  /// Seconds since the simulation began.
  double now() const;
  /// Up from now on, until it fails in so many seconds (infinite: never). What was in the background is gone.
  void start(double failure_s);
  /// The failure to come is called off.
  void stop();
  /// Lets work take its time; false: the host failed before its end, now.
  bool work(double seconds);
  /// Starts work in the background; one at a time. Ends with the host.
  void start_behind(double seconds);
  /// Until the background's work is done; false as above. True at once where there is none.
  bool wait_behind();
  /// Whether the last work in the background was started and done.
  bool behind_done() const;
  /// Time off the host.
  void idle(double seconds);

 private:
  FailingHost();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wt
