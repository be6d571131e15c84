// How the planned nodes start a job: torchrun on each of them, under Slurm where there are several.
#pragma once
#include <cstdint>
#include <string>
#include <utility>

#include "planner/recipes/translator.hpp"

namespace wt {

/// Nodes with as many GPUs as the draft says, or one node with all.
std::pair<std::int64_t, std::int64_t> nodes_and_gpus(const RecipeDraft& draft);
/// "torchrun --nnodes N --nproc-per-node 8 ... SCRIPT". Several nodes meet at $head_node.
std::string torchrun_command(const RecipeDraft& draft, const std::string& script);

struct Launch {
  std::string directive;  ///< "#SBATCH ..."; for several nodes
  std::string setup;      ///< lines before the command, each with its end
  std::string command;    ///< RecipeDraft::command on all nodes
};
Launch launch_of(const RecipeDraft& draft);

}  // namespace wt
