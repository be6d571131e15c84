// A notice to end: SIGTERM or SIGUSR1, which schedulers send before maintenance and preemption. The agent passes it on.
// The ranks agree on a step, save after it and end with kEndedOnRequest, so no step is lost. A second signal ends them
// at once.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <map>

namespace wt {

/// Exit status of ranks and agent after a notice and a save: EX_TEMPFAIL of sysexits.h, "try again later". Slurm
/// requeues such a job if RequeueExit lists the status.
inline constexpr int kEndedOnRequest = 75;

/// SIGINT, SIGTERM and SIGUSR1 no longer end this process. run_ranks stops its ranks, and stop_requested() reports the
/// signal.
void catch_stop_signals();
/// SIGTERM and SIGUSR1. The agent starts ranks with them blocked, so that a notice waits until the ranks can handle it.
sigset_t notice_signals();
/// To be called in a rank before it starts threads. From now on SIGTERM and SIGUSR1 are a notice, also one that came
/// before. A second signal ends the process, unless it comes within two seconds: a scheduler and a launcher may both
/// signal the ranks.
void take_notice();
/// The first signal, 0 = none.
int stop_requested();

/// The agent's side of a notice.
class GracePeriod {
 public:
  /// `seconds` from the notice on. 0: no grace period; ranks are killed at once.
  explicit GracePeriod(double seconds) : seconds_(seconds) {}
  /// Passes a notice on to the ranks (process ids) once, unless they `know` of one. True if they must be killed: the
  /// time is over, or the signal was SIGINT or a repeated one.
  bool over(const std::map<pid_t, std::int64_t>& ranks, bool know);

 private:
  double seconds_;
  double told_at_s_ = 0;
};

}  // namespace wt
