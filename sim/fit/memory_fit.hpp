// The constants of memory (sim/cost/memory/allocator_memory.hpp, outside_allocator.hpp), fitted to published figures.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/memory/stack_memory.hpp"
#include "sim/measurements/published_tables.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

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

/// The constants of allocators, of all published figures or without some.
class MemoryModel {
 public:
  explicit MemoryModel(std::vector<MemorySample> samples);
  /// What is left out for a run: its framework's runs of its width, or of a source that measured one model alone its tp
  /// and pp.
  std::string group_of(const RunRow& run) const;
  /// Of everything else: not a figure of the group has a part in it.
  MemoryModel without(const std::string& group) const { return without(&MemorySample::group, group); }
  MemoryModel without_origin(const std::string& origin) const { return without(&MemorySample::origin, origin); }

  AllocatorConstants constants() const;
  AllocatorMemory of_stack(const StackSpec& stack) const { return constants().of_stack(stack); }

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
  AllocatorConstants::Kind kind_of(MemoryOf kind, const FittedMemory& fitted) const;

  std::vector<Known> known_;
  FittedMemory allocated_, reserved_;
};

/// The constants with the smallest relative errors (robust). Priors carry where nothing was measured, and hold each
/// stack's constants near the typical ones. Only what is reserved has fragmentation.
FittedMemory fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf kind);

/// Of every row that has a memory and a program; others are left out.
std::vector<MemorySample> memory_samples(const std::vector<RunRow>& rows, const std::vector<StackSpec>& stacks);

/// Of what processes take outside of their allocators, published rows that are usable; the stack of a row is that of
/// its framework.
OutsideMemory outside_memory(const std::vector<OutsideRow>& rows, const std::vector<StackSpec>& stacks);

/// Both, without the figures of an origin; "" = of all.
StackMemories stack_memories(const PublishedTables& tables, const std::vector<StackSpec>& stacks,
                             const std::string& without = "");

}  // namespace wt
