// How much memory a step takes on a GPU: live is what its program says (live_memory.hpp); allocated is what the
// framework's tensors come to, reserved what the allocator holds for them. Between them stand constants that sim/fit
// finds in published runs, typical ones and by how much each stack's differ: a workspace (CUDA libraries',
// communication buffers that are tensors), and for reserved memory by how much fragmentation inflates what comes and
// goes. The CUDA context and NCCL's own buffers are outside the allocator (outside_allocator.hpp).
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "configs/files/stack.hpp"
#include "sim/cost/memory/memory_forecast.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

struct MemoryConstants {
  double workspace_bytes = 0;
  double fragmentation = 1;  ///< of dynamic bytes
  double bytes(const LiveMemory& live) const { return live.kept + fragmentation * live.dynamic + workspace_bytes; }
};

/// Constants of a typical stack, and of those that were measured.
struct FittedMemory {
  MemoryConstants typical;
  std::map<std::string, MemoryConstants> by_stack;
  const MemoryConstants& of(const std::string& stack) const {
    const auto found = by_stack.find(stack);
    return found == by_stack.end() ? typical : found->second;
  }
};

/// What the tensors of one stack's ranks come to, as its published runs or other stacks' say.
class AllocatorMemory {
 public:
  /// What an answer of one kind is made of: constants, what they rest on, and the ends of its 80 % interval as logs.
  struct Kind {
    MemoryConstants constants;
    Evidence constants_from = Evidence::assumed;
    std::pair<double, double> log_interval;
  };
  AllocatorMemory(Kind allocated, Kind reserved, bool described);
  /// Intervals of peaks are never narrower than kShapeDoubt. Of states and activations nothing is fitted; a peak that
  /// may be either is between allocated and reserved.
  MemoryForecast of(MemoryOf kind, const LiveMemory& live) const;

  /// What one wrong fact about a run costs, however well its source's other runs agree: 16 instead of 8 key-value heads
  /// in a model called Llama-3.1-405B.
  static constexpr double kShapeDoubt = 0.01;

 private:
  Kind allocated_, reserved_;
  bool described_;
};

/// The constants of every stack, kept in configs/constants/memory.json.
struct AllocatorConstants {
  using LogInterval = std::pair<double, double>;  ///< of log(measured / predicted), 80 %
  struct Kind {
    FittedMemory fitted;
    std::map<std::string, LogInterval> own;  ///< of stacks with enough figures of their own
    LogInterval others;                      ///< of stacks that were left out whole
  };
  Kind allocated, reserved;
  LogInterval undescribed;  ///< of stacks taken for PyTorch's FSDP though they are another

  /// A stack that its file describes (StackSpec::memory_described) but that no run of this kind measured has the
  /// typical constants, and the errors of stacks left out whole. One that no file describes is taken for PyTorch's
  /// FSDP, and its interval is the error that described stacks have when they are taken for that.
  AllocatorMemory of_stack(const StackSpec& stack) const;
};
void to_json(nlohmann::json& json, const AllocatorConstants& constants);
void from_json(const nlohmann::json& json, AllocatorConstants& constants);

/// Whether a figure follows from the program alone: nothing is fitted to it.
bool by_formula(MemoryOf kind);

}  // namespace wt
