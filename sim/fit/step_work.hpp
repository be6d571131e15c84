// What one step of a published run asks of its hardware, on the pipeline stage with the most work: the sums of its step
// program, timed by what published kernel and collective measurements say of the GPU and the fabric. What a framework
// makes of that (how much of it at once, how fast its own kernels are) is the step model's part.
#pragma once
#include <string>

#include "configs/files/stack.hpp"
#include "sim/cost/stacks/stack_cost.hpp"
#include "sim/measurements/run_layout.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

/// Sums over all microbatches of a step, in seconds of one GPU unless said otherwise.
struct PhaseWork {
  ProductTime products;    ///< matrix products, by the wave model
  double attention_s = 0;  ///< attention kernels by their shape, at the data sheet's FLOP/s
  double memory_s = 0;     ///< bytes of everything else over the data sheet's
  double launches = 0;     ///< kernels that the host issues
  double routings = 0;     ///< times that rows of a layer are routed to experts
  double tensor_s = 0;     ///< collectives of tensor groups
  double tensor_calls = 0;
  double exchange_s = 0;       ///< rows to experts elsewhere and back; keys and values of context groups
  double once_exchange_s = 0;  ///< rows, where a token is sent once to each place
  double gather_s = 0;         ///< weights gathered and gradients scattered, that run beside computation
};

struct StepWork {
  PhaseWork forward, backward;  ///< of the stage's layers; recompute is backward's
  PhaseWork ends;               ///< of embedding and output projection, of both passes
  double replicas_s = 0;        ///< once a step: gradients over replicas, weights gathered anew
  double optimizer_s = 0;       ///< bytes of the update over the data sheet's bandwidth
  double send_s = 0;            ///< activations to the next stage and gradients back, of all microbatches
  double microbatches = 1, stages = 1, chunks = 1;
  double layers = 1, stage_layers = 1;  ///< of the model, of the stage
  bool ends_as_layers = false;          ///< embedding and output projection stand in place of a layer each
  bool stages_over_nodes = false;       ///< a pipeline whose stages are on different nodes
  double tensor_ranks = 1;
  std::int64_t expert = 1;  ///< ranks that share a layer's experts
  Dispatcher dispatcher = Dispatcher::alltoall;
  bool exchange_overlap = false;  ///< rows travel while another microbatch's are computed
  CudaGraphs graphs = CudaGraphs::none;

  /// Seconds that a GPU would need at the data sheet's FLOP/s for the model's FLOPs: of the naive prediction.
  double model_flops_s = 0;
};

/// Of the rows that a dispatcher sends to a token's experts, the share that leaves where it sends a token once to each
/// place that has some of them (Dispatcher), a place being a node where the group spans several, else a rank; the
/// experts of a token are drawn evenly. 1 for other dispatchers.
double share_sent(const RunRow& run, const RankGroup& group);

/// Throws Error{usage} with the reason where the row cannot be predicted: no data sheet of the GPU, an unusable row, a
/// layout that the step program refuses.
StepWork step_work(const RunRow& run, const BenchmarkTimes& benchmarks, const StackSpec& stack = {});

}  // namespace wt
