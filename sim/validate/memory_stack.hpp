// How a framework uses memory: which tensors it keeps between forward and backward, how many bytes a parameter costs
// it, and which rank's memory it prints. Facts of its source code, not fitted.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace wt {

struct MemoryStack {
  std::string name;
  std::vector<std::string> frameworks;  ///< parts of the names by which tables of runs call it
  double parameter_bytes = 2, gradient_bytes = 4, optimizer_bytes = 12;  ///< a parameter; fp32 master copy and moments
  double logit_bytes = 12;        ///< a logit, where the loss starts backward: its copies and their gradients
  bool dropout = false;           ///< keeps masks, and with materialised scores these twice
  bool fused_gate = false;        ///< keeps the gated activation's input alone, else the activated gate, too
  bool weight_scratch = false;    ///< one bf16 tensor for each shape of a weight, for gradients added up in place
  bool context_by_heads = false;  ///< context parallelism exchanges heads and keeps the attention's output twice
  bool late_reuse = false;        ///< sequence parallelism gathers on a stream of its own: buffers come back late
  bool stages_by_cost = false;    ///< pipeline stages of like cost, the output projection included, not of like layers
  bool first_rank_only = false;   ///< what it prints is the first pipeline stage's, else the largest
};

const std::vector<MemoryStack>& memory_stacks();
/// Of a framework as a table calls it; the first one, which is the plainest, where none is known.
const MemoryStack& stack_of_framework(const std::string& framework);
/// By name. Throws Error{usage} naming those there are.
const MemoryStack& memory_stack(const std::string& name);

}  // namespace wt
