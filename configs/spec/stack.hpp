// A stack: the framework that a run trains with, as far as it changes what a step takes, in time and in memory. Facts
// here come from its documentation and source code; the constants of the step-time model
// (sim/cost/stacks/step_model.hpp) and of memory (sim/validate/memory.hpp) are fitted.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

namespace wt {

class YamlMap;

/// Kernels of attention: FlashAttention-2 and what has its shape (Triton's, SDPA's), written for Ampere; cuDNN's
/// (Transformer Engine), which has kernels of its own for later GPUs, as FlashAttention-3 has; or none that is fused: two
/// products, and scores in memory.
enum class AttentionKernels { flash2, cudnn, unfused };

/// How a framework uses memory: which tensors it keeps between forward and backward, how many bytes a parameter costs
/// it, and which rank's memory it prints. The defaults are those of PyTorch's FSDP.
struct MemoryFacts {
  double parameter_bytes = 2, gradient_bytes = 4, optimizer_bytes = 12;  ///< a parameter; fp32 master copy and moments
  double logit_bytes = 12;        ///< a logit, where the loss starts backward: its copies and their gradients
  bool dropout = false;           ///< keeps masks, and with materialised scores these twice
  bool fused_gate = false;        ///< keeps the gated activation's input alone, else the activated gate, too
  bool weight_scratch = false;    ///< one bf16 tensor for each shape of a weight, for gradients added up in place
  bool context_by_heads = false;  ///< context parallelism exchanges heads and keeps the attention's output twice
  bool late_reuse = false;        ///< sequence parallelism gathers on a stream of its own: buffers come back late
  bool first_rank_only = false;   ///< what it prints is the first pipeline stage's, else the largest
};

/// Constants of the step-time model that differ from stack to stack; sim/cost/stacks/step_model.hpp says what each is.
inline constexpr std::array<const char*, 12> kStackFactors = {"products", "attention", "memory", "item_s",
                                                              "call_s",   "network",   "tensor", "exchange",
                                                              "replicas", "optimizer", "step_s", "pipelined_tensor_s"};

struct StackSpec {
  std::string name;
  std::vector<std::string> frameworks;  ///< words by which a table of measurements names it
  /// Layers are dealt to pipeline stages by cost, so that embedding and output projection count as layers do; else
  /// evenly.
  bool balanced_stages = false;
  /// Gathers and reductions of a shard group have a communicator each; else they share one, and go one after the other
  /// in the order of issue (PyTorch's FSDP unless told otherwise, pytorch/pytorch#186335; assumed of others).
  bool separate_reduce_group = false;
  AttentionKernels attention = AttentionKernels::flash2;
  MemoryFacts memory;
  /// Factors on the typical stack's constants, by name of kStackFactors, above 0: known better than by a fit. Others
  /// are fitted, or 1 where the stack has no published steps.
  std::map<std::string, double> step = {};
  std::string source = {};
};

/// The stack that prices are of where nobody names one: FSDP2, as our trainer's.
constexpr const char* kDefaultStack = "torchtitan";

/// Throws Error{usage}: unknown keys, no framework, negative bytes.
StackSpec stack_from_yaml(YamlMap& map);
/// A preset of configs/stacks by name, or a file.
StackSpec read_stack(const std::string& name_or_file);
/// All presets, by name.
std::vector<StackSpec> read_stacks();
/// The one with the longest word (upper and lower case alike) in the framework's text; none fits = a stack of that name
/// that nothing is known of.
StackSpec stack_of(const std::string& framework, const std::vector<StackSpec>& stacks);

}  // namespace wt
