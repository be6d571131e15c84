// The agent: starts the ranks of a run on this machine, watches them, and when one fails stops all and starts the next
// generation, which continues from the newest valid checkpoint: in the same places, on other nodes, or in another
// layout (trainer/recovery/recovery.hpp). It sets torchrun's environment, so a rank does not know who started it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/launch/rank_generation.hpp"
#include "trainer/recovery/fleet.hpp"

namespace wt {

/// What a run has reached.
struct RunProgress {
  std::string checkpoint;  ///< the newest one in storage
  std::int64_t safe_step =
      0;  ///< that a start goes on from: of that checkpoint, or of a copy in memory that one has taken
  std::int64_t steps_done = 0;
};

/// A generation that ended before the run did, and what came of it: another one of new processes, or, where ranks
/// regroup, of those that are left or have come back.
struct RestartRecord {
  int generation = 0;
  GenerationEnd end;
  std::vector<std::int64_t> ranks_nodes;  ///< of end.ranks
  RunProgress reached;
  /// What was done: "restart", "spare", "shrink to 2 ranks", "grow to 4 ranks", "without replica 1", "replica 1 rejoins
  /// after step 9", "still without replica 1", or why nothing was.
  std::string policy;
  std::string layout;                         ///< of the next generation
  std::vector<std::int64_t> nodes, excluded;  ///< of the next generation
  std::optional<Regrouped> regrouped;         ///< without a restart; none before all ranks train again
};

struct AgentResult {
  std::vector<RestartRecord> restarts;
  std::vector<std::int64_t> excluded;  ///< nodes that are lost and not back
  double wall_s = 0;
  bool ended_on_request = false;  ///< the ranks were asked to end, and have saved
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
  /// Seconds until a node that was lost in this generation is back; none = never.
  std::function<std::optional<double>(int generation, std::int64_t node)> repair_s;
  /// Told of each restart, before the next generation starts, and of the end.
  std::function<void(const AgentResult&)> record;
};

/// Returns when all ranks of a generation ended well, or on request. Throws Error{usage} when a rank ended with status
/// 2, Error{runtime} after max_restarts failures and when the agent is stopped, Error{final} when the policy has no
/// recovery that is possible: each with the failing rank's cause.
AgentResult train_with_agent(const AgentOptions& options);

/// The same ranks once, on nodes of their own. Throws as above; nothing is started again.
void run_ranks(const std::vector<std::string>& command, std::int64_t ranks);

/// This process is killed when its launcher dies, which could not stop it any more: the agent of a rank, or the drill
/// of an agent, that WINDTUNNEL_PARENT (a process id) names, or torchrun's agent. Throws Error{runtime} where that is
/// gone already. Nothing under Slurm and MPI, which end what they started, nor in a process that was started by hand.
void end_with_launcher();

}  // namespace wt
