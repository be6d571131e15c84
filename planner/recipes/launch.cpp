#include "planner/recipes/launch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace wt {

std::pair<std::int64_t, std::int64_t> nodes_and_gpus(const RecipeDraft& draft) {
  const std::int64_t world = draft.run.layout.world();
  std::int64_t each = std::min(world, draft.gpus_per_node);
  while (world % each != 0) --each;
  return {world / each, each};
}

std::string torchrun_command(const RecipeDraft& draft, const std::string& script) {
  const auto [nodes, gpus] = nodes_and_gpus(draft);
  // Rendezvous (torch.distributed.run): all nodes ask the first one, at torchrun's usual port.
  const char* const meeting = nodes > 1 ? "--rdzv-backend c10d --rdzv-endpoint $head_node:29500" : "--standalone";
  return fmt::format("torchrun --nnodes {} --nproc-per-node {} {} {}", nodes, gpus, meeting, script);
}

Launch launch_of(const RecipeDraft& draft) {
  const auto [nodes, gpus] = nodes_and_gpus(draft);
  Launch out{.directive = "", .setup = "", .command = draft.command};
  if (draft.gpu_queues > 0) out.setup += fmt::format("export CUDA_DEVICE_MAX_CONNECTIONS={}\n", draft.gpu_queues);
  if (nodes == 1) return out;
  out.directive = fmt::format("#SBATCH --nodes={} --ntasks-per-node=1 --gpus-per-node={} --exclusive", nodes, gpus);
  out.setup += "export head_node=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n";
  out.command = "srun " + draft.command;
  return out;
}

}  // namespace wt
