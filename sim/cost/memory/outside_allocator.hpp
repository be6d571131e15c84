// GPU memory of a training process outside its framework's allocator: the CUDA context, loaded kernels, and NCCL's
// buffers if the run has several GPUs. The step program does not contain it. It is read from published out-of-memory
// messages (configs/measurements/outside_allocator.csv).
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/stack.hpp"
#include "sim/cost/memory/memory_forecast.hpp"

namespace wt {

/// Context and NCCL's buffers by formula: 0.6 GiB, and a sum over communicators (NCCL 2.30.7: buffers of 12 MiB a ring
/// and channel, 6 more of a tree, those of NVLS, 9.2 each way of a network, the pool of sends and receives). Data
/// parallelism has one communicator. Stacks with resident weights (Megatron-Core, nanotron) have one of tensor groups,
/// one of data-parallel groups, and one of pipeline stages, which send and receive. 24 channels and Hopper's NVLS are
/// assumed. The formula gives ratios between runs; their level is measured.
double outside_by_formula(const StackSpec& stack, std::int64_t gpus);

class OutsideMemory {
 public:
  /// One origin's rows of one stack.
  struct Known {
    std::string origin, stack;
    bool alone = false;    ///< of a run on one GPU
    double log_bytes = 0;  ///< mean of the origin's rows, each over outside_relative() of its run
  };
  /// The formula's bytes of a run over those of data parallelism on a node of eight GPUs; 1 for a single GPU.
  static double outside_relative(const StackSpec& stack, std::int64_t gpus);
  OutsideMemory() = default;
  explicit OutsideMemory(std::vector<Known> known) : known_(std::move(known)) {}
  const std::vector<Known>& known() const { return known_; }
  /// A copy without this origin's rows.
  OutsideMemory without(const std::string& origin) const;
  /// The formula's ratio times the geometric mean over all origins. A stack with kFewestOrigins origins has the mean
  /// over these and, counted as one more, the mean over all; left-out rows cannot judge a stack with a single message.
  /// Runs on one GPU have a mean of their own. The interval comes from errors on left-out origins. Without any row:
  /// kAssumed_bytes within a factor of 2.
  MemoryForecast of_stack(const StackSpec& stack, std::int64_t gpus) const;

  static constexpr std::size_t kFewestOrigins = 2;
  static constexpr double kAssumed_bytes = 1.5 * (1 << 30);  // a context of 0.5 GiB, and NCCL's buffers of two groups

 private:
  /// Logarithm of bytes, from all origins except `without`.
  double log_bytes(const std::string& stack, bool alone, const std::string& without = "") const;

  std::vector<Known> known_;
};

void to_json(nlohmann::json& json, const OutsideMemory& memory);
void from_json(const nlohmann::json& json, OutsideMemory& memory);

}  // namespace wt
