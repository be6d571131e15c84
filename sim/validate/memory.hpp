// Predicts measured memory from layouts. The bytes follow from the shapes (run_memory.hpp); two constants for each kind
// of figure are fitted: what a framework holds besides (CUDA libraries' workspaces, communication buffers), and for
// memory reserved rather than allocated by how much fragmentation inflates what comes and goes.
#pragma once
#include <string>
#include <vector>

#include "configs/spec/stack.hpp"
#include "sim/cost/memory/run_memory.hpp"
#include "sim/validate/statistics.hpp"

namespace wt {

struct MemoryConstants {
  double workspace_bytes = 0;
  double fragmentation = 1;  ///< of dynamic bytes
};

/// A row beside its bytes by shape.
struct MemorySample {
  const RunRow* row = nullptr;
  RunMemory memory;
  std::string group, regime;
  StackSpec stack;  ///< without frameworks: nobody described it, and PyTorch's FSDP stands in for it
};

double predicted_bytes(const MemorySample& sample, const MemoryConstants& constants);

/// The constants with the smallest relative errors (robust, with priors that carry where nothing was measured). Only
/// what is reserved has fragmentation; a source that does not say is taken to print what is allocated.
MemoryConstants fit_memory(const std::vector<const MemorySample*>& samples, MemoryOf memory_of);

/// One judged row, in order, for every row with a memory and every unusable one. Constants come from `rows` and
/// `reference` without what is of the row's own group: its source and model, and its tp and pp, too, where its kind of
/// figure was measured of no other model. `stack`: the name of the stack of all of `rows`; empty = by their framework,
/// of `stacks`. Intervals of peaks are never narrower than 1 % either way, which is what one wrong fact about a run
/// costs; those of stacks that nobody described come from the errors on described ones, as if they were not.
/// The baseline holds the bytes a parameter on the GPU constant: the median of the same rows.
std::vector<Judged> judge_memory(const std::vector<RunRow>& rows, const std::vector<RunRow>& reference,
                                 const std::vector<StackSpec>& stacks, const std::string& stack = "");

}  // namespace wt
