// Memory of a step on a GPU. Live memory follows from the step's program (live_memory.hpp). Allocated memory is that of
// the framework's tensors, reserved memory what the allocator holds for them. They differ from live memory by constants
// that sim/fit finds in published runs: typical ones, and how much each stack's differ from them. The constants are a
// workspace (of CUDA libraries, and communication buffers that are tensors) and, for reserved memory, the factor by
// which fragmentation increases temporary memory. The CUDA context and NCCL's own buffers are outside the allocator
// (outside_allocator.hpp).
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/stack.hpp"
#include "sim/cost/memory/memory_forecast.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

struct MemoryConstants {
  double workspace_bytes = 0;
  double fragmentation = 1;  ///< factor on dynamic bytes
  double bytes(const LiveMemory& live) const { return live.kept + fragmentation * live.dynamic + workspace_bytes; }
};

/// Constants of a typical stack and of each measured stack.
struct FittedMemory {
  MemoryConstants typical;
  std::map<std::string, MemoryConstants> by_stack;
  const MemoryConstants& of(const std::string& stack) const {
    const auto found = by_stack.find(stack);
    return found == by_stack.end() ? typical : found->second;
  }
};

/// The peak of a user's own step: allocated or reserved.
struct MeasuredPeak {
  MemoryOf of = MemoryOf::peak_reserved;
  LiveMemory live;  ///< as the step program predicts it
  double bytes = 0;
};

/// Memory of tensors on the ranks of one stack, from its own published runs or other stacks'.
class AllocatorMemory {
 public:
  /// Inputs of one kind of forecast: constants, their evidence, and the ends of the 80 % interval as logarithms.
  struct Kind {
    MemoryConstants constants;
    Evidence constants_from = Evidence::assumed;
    std::pair<double, double> log_interval;
  };
  AllocatorMemory(Kind allocated, Kind reserved, bool described);
  /// Intervals are never narrower than kShapeDoubt. States and activations have no fitted constants. A peak of unknown
  /// kind is between allocated and reserved.
  MemoryForecast of(MemoryOf kind, const LiveMemory& live) const;

  /// The same, as measured peaks of a user's own job say.
  AllocatorMemory knowing(const std::vector<MeasuredPeak>& peaks) const;

  /// Relative error from one wrong fact about a run, however well the other runs of its source agree: for example 16
  /// instead of 8 key-value heads in a model called Llama-3.1-405B.
  static constexpr double kShapeDoubt = 0.01;

 private:
  Kind allocated_, reserved_;
  bool described_;
};

/// The constants of every stack, kept in configs/constants/memory.json.
struct AllocatorConstants {
  using LogInterval = std::pair<double, double>;  ///< 80 % interval of log(measured / predicted)
  struct Kind {
    FittedMemory fitted;
    std::map<std::string, LogInterval> own;  ///< by stack with enough figures of its own
    LogInterval others;                      ///< errors of stacks that were left out whole
  };
  Kind allocated, reserved;
  LogInterval undescribed;  ///< errors of described stacks when they are taken for PyTorch's FSDP

  /// A stack whose file describes its memory (StackSpec::memory_described), but without measured runs of this kind, has
  /// the typical constants and the errors of stacks left out whole. A stack that no file describes is taken for
  /// PyTorch's FSDP and has the interval `undescribed`.
  AllocatorMemory of_stack(const StackSpec& stack) const;
};
void to_json(nlohmann::json& json, const AllocatorConstants& constants);
void from_json(const nlohmann::json& json, AllocatorConstants& constants);

/// Whether the figure follows from the program alone, without fitted constants.
bool by_formula(MemoryOf kind);

}  // namespace wt
