// Electrical power at the input of a training node: what its GPUs draw in each state, and what the rest of it draws.
// The rest is its CPUs, memory, storage, network adapters, NVSwitches, fans and supplies with their losses. Not in it:
// switches between nodes, storage servers, and the cooling of the room.
#pragma once
#include <cstdint>
#include <string>

#include "configs/files/charges.hpp"
#include "configs/files/data_sheet.hpp"

namespace wt {

/// Shares of a step of the critical rank, which stands for all ranks. In the rest the GPU has no kernels.
struct StepShares {
  double computing = 1, communicating = 0;  ///< communicating includes waiting for others
};

/// Watts of one GPU by state, and of a node without its GPUs.
struct NodeWatts {
  double compute = 0, communicate = 0, idle = 0, host = 0;
  /// Of one GPU, mean over a step, without the host. Shares are cut to at most 1 together.
  double of_gpu(StepShares step) const;
};
/// `z`: standard deviations from the middle of the ranges. All amounts share one error: one meter, one workload.
NodeWatts node_watts(const PowerSpec& power, double z = 0);

/// What takes the heat out of a node. Fans are a part of its power; liquid and immersion need none.
enum class NodeCooling { air, liquid };
NodeCooling usual_cooling(const DataSheet& gpu);  ///< liquid for GB200 and GB300, otherwise air

/// Shares of a GPU's thermal design power, with 80 % intervals, where nobody gave watts.
PowerSpec data_sheet_power(const DataSheet& gpu, std::int64_t gpus_per_node, NodeCooling cooling);

struct EnergyAmount {
  double value = 0, low = 0, high = 0;  ///< 80 % interval
};

/// A step to charge with energy.
struct ChargedStep {
  double step_s = 0, low_s = 0, high_s = 0;  ///< 80 % interval
  StepShares shares;
  double tokens = 0;  ///< of all GPUs
  std::int64_t gpus = 0, gpus_per_node = 8;
};

struct StepEnergy {
  EnergyAmount gpu_W;    ///< of a GPU at its node: itself, and its part of the host
  EnergyAmount token_J;  ///< of all nodes, a token
};

/// The intervals combine the errors of power and of the step, which are independent, to first order. A step that takes
/// longer than predicted waits: it computes for as many seconds and draws less power in the mean.
StepEnergy step_energy(const PowerSpec& power, const ChargedStep& step);

}  // namespace wt
