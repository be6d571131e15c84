// What a training process takes of a GPU's memory outside of its framework's allocator: the CUDA context, loaded
// kernels, and NCCL's buffers where the run has several GPUs. Nobody allocates it in the step program; it is read from
// published out-of-memory messages (configs/measurements/outside_allocator.csv).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/stack.hpp"
#include "sim/cost/memory/memory_forecast.hpp"

namespace wt {

class OutsideMemory {
 public:
  /// What one origin's rows of a stack say.
  struct Known {
    std::string origin, stack;
    bool alone = false;    ///< of a run on one GPU
    double log_bytes = 0;  ///< mean of the origin's rows
  };
  OutsideMemory() = default;
  explicit OutsideMemory(std::vector<Known> known) : known_(std::move(known)) {}
  const std::vector<Known>& known() const { return known_; }
  /// Of everything but this origin.
  OutsideMemory without(const std::string& origin) const;
  /// The geometric mean over all origins; over the stack's own, with the mean of all as one more, where it has
  /// kFewestOrigins. One message says too little of a stack: left-out rows cannot judge it. Runs on one GPU are a mean
  /// of their own. The interval is that of errors on origins left out. Without any row kAssumed_bytes within a factor
  /// of 2.
  MemoryForecast of_stack(const std::string& stack, std::int64_t gpus) const;

  static constexpr std::size_t kFewestOrigins = 2;
  static constexpr double kAssumed_bytes = 1.5 * (1 << 30);  // a context of 0.5 GiB, and NCCL's buffers of two groups

 private:
  /// Logarithm of bytes, of all origins but one.
  double log_bytes(const std::string& stack, bool alone, const std::string& without = "") const;

  std::vector<Known> known_;
};

void to_json(nlohmann::json& json, const OutsideMemory& memory);
void from_json(const nlohmann::json& json, OutsideMemory& memory);

}  // namespace wt
