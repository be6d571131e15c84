// What a rank of one stack takes of its GPU's memory: what its allocator reserves, and what is outside of it. The one
// answer that plans, simulations and validations ask.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "sim/cost/memory/allocator_memory.hpp"
#include "sim/cost/memory/outside_allocator.hpp"

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

/// Of every stack, as published runs say; kept in configs/constants/memory.json.
struct StackMemories {
  AllocatorConstants allocator;
  OutsideMemory outside;

  /// For a run on so many GPUs.
  StackMemory of(const StackSpec& stack, std::int64_t gpus) const {
    return {allocator.of_stack(stack), outside.of_stack(stack.name, gpus)};
  }
};
void to_json(nlohmann::json& json, const StackMemories& memories);
void from_json(const nlohmann::json& json, StackMemories& memories);

}  // namespace wt
