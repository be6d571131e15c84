// The work of one step of a published run on its fullest pipeline stage: sums over its step program, in seconds by
// published kernel and collective measurements of the GPU and the fabric. How a framework runs this work (overlap,
// speed of its own kernels) is in the step model.
#pragma once
#include <string>

#include "configs/files/stack.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/measurements/run_layout.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

/// Sums over all microbatches of a step. Seconds of one GPU unless said otherwise.
struct PhaseWork {
  ProductTime products;      ///< matrix products, by the wave model
  double attention_s = 0;    ///< attention kernels by shape, at the data sheet's FLOP/s
  double memory_s = 0;       ///< bytes of all other kernels over the data sheet's bandwidth
  double launches = 0;       ///< count of kernels that the host issues
  double routings = 0;       ///< count of times that a layer routes rows to experts
  double routings_back = 0;  ///< Launches::routings_back
  double tensor_s = 0;       ///< collectives of tensor-parallel groups
  double tensor_calls = 0;
  double exchange_s = 0;       ///< rows to experts on other ranks and back; keys and values of context groups
  double once_exchange_s = 0;  ///< rows, if a token is sent once to each place
  double gather_s = 0;         ///< weights gathered and gradients scattered; these overlap computation
};

struct StepWork {
  PhaseWork forward, backward;  ///< the stage's layers; recompute counts as backward
  PhaseWork ends;               ///< embedding and output projection, both passes
  double replicas_s = 0;        ///< once a step: gradients over replicas, weights gathered again
  double optimizer_s = 0;       ///< bytes of the update over the data sheet's bandwidth
  double send_s = 0;            ///< activations to the next stage and gradients back, all microbatches
  double microbatches = 1, stages = 1, chunks = 1;
  double layers = 1, stage_layers = 1;  ///< layers of the model and of the stage
  bool ends_as_layers = false;          ///< embedding and output projection each take the place of a layer
  bool stages_over_nodes = false;       ///< consecutive stages are on different nodes
  double tensor_ranks = 1;
  std::int64_t expert = 1;  ///< ranks that share a layer's experts
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool gathers_overlap = true;    ///< MemoryFacts::gathers_overlap
  bool exchange_overlap = false;  ///< rows travel while another microbatch is computed
  CudaGraphs graphs = CudaGraphs::none;

  /// Seconds for the model's FLOPs at the data sheet's FLOP/s, for the baseline prediction.
  double model_flops_s = 0;
};

/// Share of the dispatched rows that are sent if a dispatcher sends a token once to each place with some of its experts
/// (Dispatcher). A place is a node if the group spans several, else a rank. A token's experts are assumed to be drawn
/// evenly. 1 for other dispatchers.
double share_sent(const RunRow& run, const RankGroup& group);

/// Throws Error{usage} with the reason if the row cannot be predicted: the GPU has no data sheet, the row is unusable,
/// or the step program refuses the layout.
StepWork step_work(const RunRow& run, const BenchmarkTimes& benchmarks, const StackSpec& stack = {});

}  // namespace wt
