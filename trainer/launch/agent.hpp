// The agent starts the ranks of a run on this machine and watches them. When one fails, it stops all and starts the
// next generation, which resumes from the newest valid checkpoint: in the same places, on other nodes, or in another
// layout (trainer/recovery/recovery.hpp). It sets torchrun's environment, so ranks do not depend on their launcher.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/rank_generation.hpp"
#include "trainer/recovery/fleet.hpp"

namespace wt {

/// The progress of a run.
struct RunProgress {
  std::string checkpoint;      ///< the newest in storage
  std::int64_t safe_step = 0;  ///< a start resumes from it: that checkpoint's step, or that of a copy in memory
  std::int64_t steps_done = 0;
};

/// A generation that ended before the run, and the reaction to it: a new generation of processes, or a regrouping of
/// the remaining or returning ranks.
struct RestartRecord {
  int generation = 0;
  GenerationEnd end;
  std::vector<std::int64_t> ranks_nodes;  ///< of end.ranks
  RunProgress reached;
  /// The action: "restart", "spare", "shrink to 2 ranks", "grow to 4 ranks", "without replica 1", "replica 1 rejoins
  /// after step 9", "still without replica 1", or why there was none.
  std::string policy;
  std::string layout;                         ///< of the next generation
  std::vector<std::int64_t> nodes, excluded;  ///< of the next generation
  std::optional<Regrouped> regrouped;         ///< without a restart; empty until all ranks train again
};

struct AgentResult {
  std::vector<RestartRecord> restarts;
  std::vector<std::int64_t> excluded;  ///< lost nodes that are not back
  double wall_s = 0;
  bool ended_on_request = false;  ///< after a notice, with a save
};

struct AgentOptions {
  RunSpec run;
  NodeShape nodes;
  RecoveryPolicy policy;
  int max_restarts = 0;  ///< after failures
  int held = -1;         ///< see RankProcesses
  /// Program and arguments of a rank of this run, which has another layout than the one above where nodes are missing.
  std::function<std::vector<std::string>(const RunSpec& run)> command;
  std::function<RunProgress()> progress;
  /// Seconds until a node lost in this generation is back; empty = never.
  std::function<std::optional<double>(int generation, std::int64_t node)> repair_s;
  /// Called at each restart, before the next generation starts, and at the end.
  std::function<void(const AgentResult&)> record;
};

/// Returns when all ranks of a generation ended well, or on request. Throws Error{usage} if a rank ended with status 2,
/// Error{runtime} after max_restarts failures and if the agent is stopped, Error{final} if no recovery of the policy is
/// possible; each with the failed rank's cause.
AgentResult train_with_agent(const AgentOptions& options);

/// Runs ranks once, each on its own node, without restarts. Throws as above.
void run_ranks(const std::vector<std::string>& command, std::int64_t ranks);

/// Lets this process be killed when its launcher dies, because nobody could stop it then. The launcher of a rank is the
/// agent, that of an agent the drill, named by WINDTUNNEL_PARENT (a process id); or torchrun's agent. Throws
/// Error{runtime} if it has gone already. Does nothing under Slurm and MPI, which end their processes, and in a process
/// that was started by hand.
void end_with_launcher();

}  // namespace wt
