// GPU memory of a rank of one stack: the memory that its allocator reserves, and the memory outside the allocator.
// Plans, simulations and validations use this forecast.
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
  /// Memory as the driver counts it, which has to fit on the GPU. `buffers`: the dispatcher's (dispatcher_bytes).
  MemoryForecast process(const LiveMemory& live, double buffers) const {
    MemoryForecast out = together(of(MemoryOf::peak_reserved, live), outside_);
    for (double* bytes : {&out.bytes, &out.low, &out.high}) *bytes += buffers;
    return out;
  }
  /// The same, as measured peaks of a user's own job say.
  StackMemory knowing(const std::vector<MeasuredPeak>& peaks) const { return {allocator_.knowing(peaks), outside_}; }

 private:
  AllocatorMemory allocator_;
  MemoryForecast outside_;
};

/// Memory constants of every stack, from published runs; kept in configs/constants/memory.json.
struct StackMemories {
  AllocatorConstants allocator;
  OutsideMemory outside;

  /// For a run on this many GPUs.
  StackMemory of(const StackSpec& stack, std::int64_t gpus) const {
    return {allocator.of_stack(stack), outside.of_stack(stack, gpus)};
  }
};
void to_json(nlohmann::json& json, const StackMemories& memories);
void from_json(const nlohmann::json& json, StackMemories& memories);

}  // namespace wt
