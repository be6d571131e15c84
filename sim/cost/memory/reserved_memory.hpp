// How much memory a step takes on a GPU: live is what its program says (live_memory.hpp); allocated is what the
// framework's tensors come to, reserved what the allocator holds for them. What is between is fitted to published runs,
// typical constants and by how much each stack's differ: a workspace (CUDA libraries', communication buffers that are
// tensors), and for reserved memory by how much fragmentation inflates what comes and goes. The CUDA context and NCCL's
// own buffers are outside the allocator (outside_allocator.hpp).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/files/stack.hpp"
#include "sim/cost/fit/conformal.hpp"
#include "sim/cost/memory/memory_forecast.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

struct MemoryConstants {
  double workspace_bytes = 0;
  double fragmentation = 1;  ///< of dynamic bytes
  double bytes(const LiveMemory& live) const { return live.kept + fragmentation * live.dynamic + workspace_bytes; }
};

/// One published figure beside what its program has live.
struct MemorySample {
  std::string group, stack;  ///< what is left out together: framework and width, or a layout; the stack's name
  MemoryOf of = MemoryOf::peak_reserved;
  LiveMemory live;
  double measured = 0;
  /// As if its stack were PyTorch's FSDP; of some samples (MemoryModel::kOfStack of each stack).
  std::optional<LiveMemory> taken_for_fsdp = {};
  std::string origin = {};  ///< who published it (Origins)
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

class MemoryModel {
 public:
  explicit MemoryModel(std::vector<MemorySample> samples);
  /// What is left out for a run: its framework's runs of its width, or of a source that measured one model alone its tp
  /// and pp.
  std::string group_of(const RunRow& run) const;
  /// Of everything else: not a figure of the group has a part in it.
  MemoryModel without(const std::string& group) const { return without(&MemorySample::group, group); }
  MemoryModel without_origin(const std::string& origin) const { return without(&MemorySample::origin, origin); }

  /// A stack that its file describes (StackSpec::memory_described) but that no run of this kind measured has the
  /// typical constants, and the errors of stacks left out whole. One that no file describes is taken for PyTorch's
  /// FSDP, and its interval is the error that described stacks have when they are taken for that.
  AllocatorMemory of_stack(const StackSpec& stack) const;

  /// Samples of a stack by which it is judged how far PyTorch's FSDP stands for others: the errors of a stack that
  /// measured hundreds say no more of the next.
  static constexpr std::size_t kOfStack = 24;

 private:
  /// A sample and how far off it is by constants without its group, and by typical ones without its stack.
  struct Known {
    MemorySample sample;
    double log_error = 0, log_error_as_new = 0;           ///< log(measured / predicted)
    std::optional<double> log_error_taken_for_fsdp = {};  ///< as of a stack that nobody described
  };
  MemoryModel without(std::string MemorySample::*what, const std::string& name) const;
  static bool said(MemoryOf kind) { return kind == MemoryOf::peak_allocated || kind == MemoryOf::peak_reserved; }
  enum class Without { nothing, group, stack };
  FittedMemory fit(MemoryOf kind, Without what = Without::nothing, const std::string& name = "") const;
  std::vector<LogError> errors(MemoryOf kind, const StackSpec& stack) const;

  std::vector<Known> known_;
  FittedMemory allocated_, reserved_;
};

/// The constants with the smallest relative errors (robust). Priors carry where nothing was measured, and hold each
/// stack's constants near the typical ones. Only what is reserved has fragmentation.
FittedMemory fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf kind);

/// Of every row that has a memory and a program; others are left out.
std::vector<MemorySample> memory_samples(const std::vector<RunRow>& rows, const std::vector<StackSpec>& stacks);

}  // namespace wt
