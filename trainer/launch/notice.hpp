// A notice to end: SIGTERM or SIGUSR1, as schedulers send it before maintenance and preemption. The agent passes it on;
// the ranks agree on a step, save after it and end with kEndedOnRequest, so that no step is lost. A second signal ends
// at once.
#pragma once
#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <map>

namespace wt {

/// Exit status of ranks and agent that were asked to end and have saved: EX_TEMPFAIL of sysexits.h, "try again later".
/// Slurm queues such a job again where RequeueExit lists it.
inline constexpr int kEndedOnRequest = 75;

/// SIGINT, SIGTERM and SIGUSR1 no longer end this process: run_ranks stops its ranks, and stop_requested() tells
/// others.
void catch_stop_signals();
/// SIGTERM and SIGUSR1. The agent starts ranks with them blocked, so that a notice waits until they can take it.
sigset_t notice_signals();
/// In a rank, before it starts threads: SIGTERM and SIGUSR1 are a notice from now on, also one that came before. A
/// second one ends the process, unless it comes within two seconds: a scheduler and the launcher that it asks both tell
/// the ranks.
void take_notice();
/// The signal that came first, 0 = none.
int stop_requested();

/// The agent's side of a notice.
class GracePeriod {
 public:
  /// From the notice on; 0: there is none, the ranks are killed at once.
  explicit GracePeriod(double seconds) : seconds_(seconds) {}
  /// Passes a notice that has come on to the ranks (process ids), once, unless they `know` of one already. True when
  /// they have to be killed: their time is over, or the signal was SIGINT or came again.
  bool over(const std::map<pid_t, std::int64_t>& ranks, bool know);

 private:
  double seconds_;
  double told_at_s_ = 0;
};

}  // namespace wt
