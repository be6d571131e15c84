// Where a rank finds the others: torchrun's environment, which our own agent sets too; Slurm's and MPI's variables do.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace wt {

struct RankEnvironment {
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::int64_t local_rank = 0;
  std::int64_t nodes = 1;  ///< with as many ranks each, as far as the launcher says; 0: not as many
  std::string master_address = "127.0.0.1";
  int master_port = 29500;
  bool agent_store = false;  ///< the launcher hosts the store (TORCHELASTIC_USE_AGENT_STORE)
  int restart_count = 0;     ///< as this rank's launcher counts; two torchrun agents may differ
  bool joins = false;        ///< gets its state from ranks that train already (WINDTUNNEL_JOINS, of our agent)
  bool regroups = false;     ///< whether the run goes on in another membership where ranks are lost; in no variable
  bool torchrun = false;     ///< started by it: the store that it hosts serves all generations of the launch

  /// True when RANK and WORLD_SIZE are set, or Slurm's or MPI's variables.
  static bool present();
  /// Throws Error{usage} on values that are not numbers.
  static RankEnvironment read();
};

/// What the launcher calls this launch: its Slurm job and torchrun's id, as far as there are any. Restarts have
/// the same.
std::string launch_name();
/// torchrun or our agent has started these ranks before, or Slurm has queued their job again.
bool is_restart();

/// The node that this rank is on, for what is placed by nodes: WINDTUNNEL_NODE, torchrun's or Slurm's number of it,
/// else the rank's own. A word that can name a folder; throws Error{usage} on any other.
std::string node_name(std::int64_t rank);
/// The same as a number, by which faults know nodes; none where nobody names the node. Throws Error{usage} on a word.
std::optional<std::int64_t> node_number();
/// WINDTUNNEL_RACK; "" where nobody says which rack the node is in.
std::string rack_name();

}  // namespace wt
