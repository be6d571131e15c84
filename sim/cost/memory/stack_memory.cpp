#include "sim/cost/memory/stack_memory.hpp"

#include <utility>

namespace wt {

StackMemory stack_memory(const StackSpec& stack, std::int64_t gpus, const PublishedTables& tables,
                         const std::vector<StackSpec>& stacks, const std::string& without) {
  std::vector<MemorySample> samples = memory_samples(tables.memory_runs, stacks);
  std::erase_if(samples, [&](const MemorySample& s) { return s.origin == without; });
  return {MemoryModel(std::move(samples)).of_stack(stack),
          OutsideMemory(tables.outside, stacks).without(without).of_stack(stack.name, gpus)};
}

}  // namespace wt
