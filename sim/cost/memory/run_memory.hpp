// The memory of one training step on the GPU with most of it, in closed form: what the step program's replay
// (sim/memory) gives for our own trainer, for the layouts and frameworks of published runs.
#pragma once
#include "configs/spec/stack.hpp"
#include "sim/measurements/run_rows.hpp"

namespace wt {

/// Bytes on one GPU.
struct RunMemory {
  double states = 0;       ///< parameters, gradients, optimizer state by ZeRO stage (Rajbhandari et al. 2020, figure 1)
  double activations = 0;  ///< of all layers and all microbatches in flight
  double scratch = 0;      ///< held through the step: gathered parameters and inputs, tensors for weight gradients
  double working = 0;      ///< at the peak: logits and the head's backward, or a layer's
  double dynamic() const { return activations + scratch + working; }
  double peak() const { return states + dynamic(); }
};

/// Layers of each pipeline stage: the same number, the first ones one more where it does not divide, or by cost.
std::vector<std::int64_t> layers_of_stages(const RunRow& row, const StackSpec& stack);

/// Microbatches whose activations a stage holds at once, 1F1B or interleaved (Narayanan et al. 2021, section 2.2), of
/// all its layers: min(pp - stage, accumulation), interleaved 1 + (pp - 1) / (pp vp) times pp on the first stage.
double in_flight(const RunRow& row, std::int64_t stage);

/// Of the stage with the highest peak, or of the first where the stack prints that.
RunMemory run_memory(const RunRow& row, const StackSpec& stack);

/// Of the layers alone on the first stage, as papers count: `states` and `activations`, the others 0.
RunMemory layer_memory(const RunRow& row, const StackSpec& stack);

}  // namespace wt
