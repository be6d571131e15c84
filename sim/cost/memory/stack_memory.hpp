// What a rank of one stack takes of its GPU's memory: what its allocator reserves, and what is outside of it. The one
// answer that plans, simulations and validations ask.
#pragma once
#include <vector>

#include "sim/cost/memory/outside_allocator.hpp"
#include "sim/cost/memory/reserved_memory.hpp"
#include "sim/measurements/published_tables.hpp"

namespace wt {

class StackMemory {
 public:
  StackMemory(AllocatorMemory allocator, MemoryForecast outside) : allocator_(allocator), outside_(outside) {}
  MemoryForecast of(MemoryOf kind, const LiveMemory& live) const { return allocator_.of(kind, live); }
  /// CUDA context, loaded kernels and NCCL's buffers.
  const MemoryForecast& outside() const { return outside_; }
  /// As the driver counts it: what has to fit on the GPU.
  MemoryForecast process(const LiveMemory& live) const { return together(of(MemoryOf::peak_reserved, live), outside_); }

 private:
  AllocatorMemory allocator_;
  MemoryForecast outside_;
};

/// As published runs say, for a run on so many GPUs; `without`: an origin whose rows have no part in it.
StackMemory stack_memory(const StackSpec& stack, std::int64_t gpus, const PublishedTables& tables,
                         const std::vector<StackSpec>& stacks, const std::string& without = "");

}  // namespace wt
