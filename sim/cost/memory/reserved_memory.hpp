// How much memory a step takes on a GPU: live is what its program says (live_memory.hpp); allocated is what the
// framework's tensors come to, reserved what the allocator holds for them. What is between is fitted to published runs:
// a workspace (CUDA libraries', communication buffers that are tensors), and for reserved memory by how much
// fragmentation inflates what comes and goes. The CUDA context and NCCL's own buffers are outside the allocator: a
// cluster's usable_memory leaves them out.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "configs/spec/evidence.hpp"
#include "configs/spec/stack.hpp"
#include "sim/cost/fit/conformal.hpp"
#include "sim/cost/memory/live_memory.hpp"
#include "sim/measurements/run_rows.hpp"

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
};

/// Bytes on a GPU with their 80 % interval.
struct MemoryForecast {
  double bytes = 0, low = 0, high = 0;
  EvidenceShares evidence{};  ///< derived by shape, the rest published or assumed; sums to 1
};

/// Of ranks without an allocator of their own that was measured: what is live, as the program says.
MemoryForecast as_live(const LiveMemory& live);

class MemoryModel {
 public:
  explicit MemoryModel(std::vector<MemorySample> samples);
  /// What is left out for a run: its framework's runs of its width, or of a source that measured one model alone its tp
  /// and pp.
  std::string group_of(const RunRow& run) const;
  /// Of everything else: not a figure of the group has a part in it.
  MemoryModel without(const std::string& group) const;

  /// `described`: whether a stack file says how its framework uses memory; else its program is taken for PyTorch's
  /// FSDP, and the interval is the error that described stacks have when they are taken for that. Intervals of peaks
  /// are never narrower than kShapeDoubt either way. Of states and activations nothing is fitted; a
  /// peak that may be either is between allocated and reserved.
  MemoryForecast of(MemoryOf kind, const LiveMemory& live, bool described = true) const;

  /// What one wrong fact about a run costs, however well its source's other runs agree: 16 instead of 8 key-value heads
  /// in a model called Llama-3.1-405B.
  static constexpr double kShapeDoubt = 0.01;
  /// Samples of a stack by which it is judged how far PyTorch's FSDP stands for others: the errors of a stack that
  /// measured hundreds say no more of the next.
  static constexpr std::size_t kOfStack = 24;

 private:
  /// A sample and how far off it is by constants without its group.
  struct Known {
    MemorySample sample;
    double log_error = 0;  ///< log(measured / predicted)
    std::optional<double> log_error_for_fsdp = {};
  };
  struct Fitted {
    MemoryConstants constants;
    bool measured = false;  ///< by any sample
  };
  MemoryModel() = default;
  static bool said(MemoryOf kind) { return kind == MemoryOf::peak_allocated || kind == MemoryOf::peak_reserved; }
  Fitted fit(MemoryOf kind, const std::string& without) const;
  std::vector<LogError> errors(MemoryOf kind, bool described) const;

  std::vector<Known> known_;
  Fitted allocated_, reserved_;
};

/// The constants with the smallest relative errors (robust, with priors that carry where nothing was measured). Only
/// what is reserved has fragmentation.
MemoryConstants fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf kind);

/// Of every row that has a memory and a program; others are left out.
std::vector<MemorySample> memory_samples(const std::vector<RunRow>& rows, const std::vector<StackSpec>& stacks);

}  // namespace wt
