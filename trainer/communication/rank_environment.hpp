// How a rank finds the others: from torchrun's environment variables, which our own agent also sets, or Slurm's and
// MPI's.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace wt {

struct RankEnvironment {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t local_rank = 0;
  std::int64_t nodes = 1;  ///< as far as the launcher says; 0: nodes have different numbers of ranks
  std::string master_address = "127.0.0.1";
  int master_port = 29500;
  bool agent_store = false;  ///< the launcher hosts the store (TORCHELASTIC_USE_AGENT_STORE)
  int restart_count = 0;     ///< counted by this rank's launcher; two torchrun agents may differ
  bool joins = false;        ///< receives its state from training ranks (WINDTUNNEL_JOINS, set by our agent)
  bool regroups = false;     ///< whether the run continues in another membership if ranks are lost; not a variable
  bool torchrun = false;     ///< started by torchrun, whose store serves all generations of the launch

  /// Whether RANK and WORLD_SIZE, or Slurm's or MPI's variables, are set.
  static bool present();
  /// Throws Error{usage} for values that are not numbers.
  static RankEnvironment read();
};

/// The launcher's name of this launch: Slurm's job and torchrun's id, if set. Restarts have the same name.
std::string launch_name();
/// Whether torchrun or our agent has started these ranks before, or Slurm has requeued their job.
bool is_restart();

/// This rank's node, to distribute things over nodes: WINDTUNNEL_NODE, torchrun's or Slurm's node number, otherwise the
/// rank's own number. Throws Error{usage} for a word that cannot be a folder name.
std::string node_name(std::int64_t rank);
/// The node's number, by which faults identify nodes; none if no variable is set. Throws Error{usage} for a word.
std::optional<std::int64_t> node_number();
/// WINDTUNNEL_RACK; "" if it is not set.
std::string rack_name();

}  // namespace wt
