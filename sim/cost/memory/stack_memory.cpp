#include "sim/cost/memory/stack_memory.hpp"

namespace wt {

StackMemory stack_memory(const StackSpec& stack, std::int64_t gpus, const PublishedTables& tables,
                         const std::vector<StackSpec>& stacks) {
  return {MemoryModel(memory_samples(tables.memory_runs, stacks)).of_stack(stack),
          OutsideMemory(tables.outside, stacks).of_stack(stack.name, gpus)};
}

}  // namespace wt
