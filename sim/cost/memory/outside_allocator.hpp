// What a training process takes of a GPU's memory outside of its framework's allocator: the CUDA context, loaded
// kernels, and NCCL's buffers where the run has several GPUs. Nobody allocates it in the step program; published
// out-of-memory messages tell it (configs/measurements/outside_allocator.csv).
#pragma once
#include <string>
#include <vector>

#include "configs/spec/stack.hpp"
#include "sim/cost/memory/memory_forecast.hpp"
#include "sim/measurements/outside_rows.hpp"

namespace wt {

class OutsideMemory {
 public:
  /// Rows that are usable; the stack of a row is that of its framework.
  OutsideMemory(const std::vector<OutsideRow>& rows, const std::vector<StackSpec>& stacks);
  /// Of everything but this source.
  OutsideMemory without(const std::string& source) const;
  /// The geometric mean over the stack's sources, with kPriorSources at the mean of all; of one GPU alone those of one
  /// GPU. The interval is that of errors on sources left out. Without any row kAssumed_bytes within a factor of 2.
  MemoryForecast of_stack(const std::string& stack, std::int64_t gpus) const;

  static constexpr double kPriorSources = 1;
  static constexpr double kAssumed_bytes = 1.5 * (1 << 30);

 private:
  struct Known {
    std::string source, stack;
    bool alone = false;    ///< of a run on one GPU
    double log_bytes = 0;  ///< mean of the source's rows
  };
  OutsideMemory() = default;
  /// Logarithm of bytes, of all sources but one.
  double log_bytes(const std::string& stack, bool alone, const std::string& without = "") const;

  std::vector<Known> known_;
};

}  // namespace wt
