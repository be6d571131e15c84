// Fits the constants of memory (sim/cost/memory/allocator_memory.hpp, outside_allocator.hpp) to published figures.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/memory/stack_memory.hpp"
#include "sim/measurements/published_tables.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

/// One published figure, with the live memory that the step program predicts for its run.
struct MemorySample {
  std::string group, stack;  ///< group: left out of a fit together (framework and width, or a layout); stack: its name
  MemoryOf of = MemoryOf::peak_reserved;
  LiveMemory live;
  double measured = 0;
  /// Live memory as if the stack were PyTorch's FSDP. Set for MemoryModel::kOfStack samples of each stack.
  std::optional<LiveMemory> taken_for_fsdp = {};
  std::string origin = {};  ///< who published it (Origins)
};

/// The constants of allocators, fitted to all published figures or without some.
class MemoryModel {
 public:
  explicit MemoryModel(std::vector<MemorySample> samples);
  /// The group that is left out to predict a run: the runs of its framework with its width. If its source measured one
  /// model alone: the runs with its tp and pp.
  std::string group_of(const RunRow& run) const;
  /// The fit without any figure of the group.
  MemoryModel without(const std::string& group) const { return without(&MemorySample::group, group); }
  MemoryModel without_origin(const std::string& origin) const { return without(&MemorySample::origin, origin); }

  AllocatorConstants constants() const;
  AllocatorMemory of_stack(const StackSpec& stack) const { return constants().of_stack(stack); }

  /// Samples of a stack that tell how far PyTorch's FSDP predicts other stacks. More samples of one stack do not tell
  /// more about the next stack.
  static constexpr std::size_t kOfStack = 24;

 private:
  /// A sample with its errors under constants fitted without its group, and under typical ones fitted without its
  /// stack.
  struct Known {
    MemorySample sample;
    double log_error = 0, log_error_as_new = 0;           ///< log(measured / predicted)
    std::optional<double> log_error_taken_for_fsdp = {};  ///< as if nobody had described the stack
  };
  MemoryModel without(std::string MemorySample::*what, const std::string& name) const;
  static bool said(MemoryOf kind) { return kind == MemoryOf::peak_allocated || kind == MemoryOf::peak_reserved; }
  enum class Without { nothing, group, stack };
  FittedMemory fit(MemoryOf kind, Without what = Without::nothing, const std::string& name = "") const;
  AllocatorConstants::Kind kind_of(MemoryOf kind, const FittedMemory& fitted) const;

  std::vector<Known> known_;
  FittedMemory allocated_, reserved_;
};

/// The constants with the smallest relative errors (robust). Priors give constants that were not measured, and keep
/// each stack's constants near the typical ones. Only reserved memory has fragmentation.
FittedMemory fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf kind);

/// One sample for every row that has a memory figure and a program; other rows are left out.
std::vector<MemorySample> memory_samples(const std::vector<RunRow>& rows, const std::vector<StackSpec>& stacks);

/// Memory that processes use outside their allocators, from the usable rows. A row's framework gives its stack.
OutsideMemory outside_memory(const std::vector<OutsideRow>& rows, const std::vector<StackSpec>& stacks);

/// Both memory fits without the figures of origin `without`; "" = with all.
StackMemories stack_memories(const PublishedTables& tables, const std::vector<StackSpec>& stacks,
                             const std::string& without = "");

}  // namespace wt
