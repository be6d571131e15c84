#include "sim/validate/memory_stack.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "configs/spec/error.hpp"
#include "configs/spec/nearest.hpp"

namespace wt {

const std::vector<MemoryStack>& memory_stacks() {
  // logit_bytes: bf16 logits with the gradient in their place (Transformer Engine's fused loss), or bf16, an fp32 copy,
  // its softmax that becomes the gradient, and that in bf16. weight_scratch: get_dummy_wgrad of Transformer Engine
  // >= 2.8; its output projection does the same.
  static const std::vector<MemoryStack> stacks = {
      {.name = "pytorch", .frameworks = {"FSDP"}},
      {.name = "megatron-core",
       .frameworks = {"Megatron-Core", "SimuMax"},
       .logit_bytes = 2,
       .fused_gate = true,
       .weight_scratch = true,
       .context_by_heads = true},
      {.name = "megatron-lm", .frameworks = {"Megatron"}, .dropout = true, .fused_gate = true},
      {.name = "nanotron",
       .frameworks = {"nanotron"},
       .late_reuse = true,
       .stages_by_cost = true,
       .first_rank_only = true}};
  return stacks;
}

const MemoryStack& stack_of_framework(const std::string& framework) {
  const auto& stacks = memory_stacks();
  const auto found = std::find_if(stacks.begin(), stacks.end(), [&](const MemoryStack& s) {
    return std::any_of(s.frameworks.begin(), s.frameworks.end(),
                       [&](const std::string& part) { return framework.find(part) != std::string::npos; });
  });
  return found == stacks.end() ? stacks.front() : *found;
}

const MemoryStack& memory_stack(const std::string& name) {
  const auto& stacks = memory_stacks();
  const auto found = std::find_if(stacks.begin(), stacks.end(), [&](const MemoryStack& s) { return s.name == name; });
  if (found != stacks.end()) return *found;
  std::vector<std::string> names;
  for (const MemoryStack& s : stacks) names.push_back(s.name);
  throw_error(Code::usage, "--stack: found '{}'{}; allowed are {}", name, did_you_mean(name, names),
              fmt::join(names, ", "));
}

}  // namespace wt
