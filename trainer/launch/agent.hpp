// The agent: starts the ranks of a run on this machine, watches them, and when one fails stops all and starts the next
// generation, which continues from the newest valid checkpoint. It sets torchrun's environment, so a rank does not know
// who started it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "trainer/launch/notice.hpp"

namespace wt {

/// What a run has safely reached: its newest checkpoint, and the last step whose metrics were written.
struct RunProgress {
  std::string checkpoint;
  std::int64_t steps_done = 0;
};

struct AgentOptions {
  std::int64_t ranks = 1;
  int max_restarts = 0;
  /// Asked at each failure. Two failures in a row with the same checkpoint end the run: a fault that comes back at the
  /// same place is not cured by starting again.
  std::function<RunProgress()> progress;
  double grace_period_s = 0;  ///< that ranks get to end by themselves after SIGTERM or SIGUSR1
};

struct RestartRecord {
  int generation = 0;      ///< that failed
  std::int64_t rank = -1;  ///< first rank seen to fail
  std::string cause;       ///< "signal 9 (Killed)", "exit status 4"
  std::string message;     ///< what the rank said, where it could
  double detected_s = 0;   ///< from the start of the generation to the detection
  double detected_unix_s = 0;
  double stopped_s = 0;  ///< until all other ranks were gone
  RunProgress reached;
};

struct AgentResult {
  std::vector<RestartRecord> restarts;
  double wall_s = 0;
  bool ended_on_request = false;  ///< the ranks were asked to end, and have saved
};

/// In a rank: it is killed when its launcher dies, which could not stop it any more: the agent that WINDTUNNEL_PARENT (a
/// process id) names, or torchrun's. Throws Error{runtime} where that is gone already. Nothing under Slurm and MPI, which
/// end what they started, nor in a rank that was started by hand.
void end_with_launcher();

/// `command`: program and arguments of a rank. Returns when all ranks of a generation ended well, or on request. Throws
/// Error{runtime} (or Error{usage} when a rank ended with status 2) after max_restarts failures, with the first failing
/// rank's cause, and when it is stopped.
AgentResult run_ranks(const std::vector<std::string>& command, const AgentOptions& options);

}  // namespace wt
