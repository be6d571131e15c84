// Memory of a GPU as plans state it: bytes, how sure, and what that rests on.
#pragma once
#include "configs/files/evidence.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

/// What a measured memory is of, on the GPU with most of it.
enum class MemoryOf {
  nothing,         ///< not measured
  peak_allocated,  ///< of tensors: torch.cuda.max_memory_allocated
  peak_reserved,   ///< of the allocator's blocks: torch.cuda.max_memory_reserved
  peak,            ///< the source does not say whether allocated or reserved
  states,          ///< parameters, gradients and optimizer state of the layers alone
  activations,     ///< what the layers keep for backward alone
};

/// Bytes on a GPU with their 80 % interval: the 10 %, 50 % and 90 % quantile. Other quantiles are Student's t with two
/// degrees of freedom through these, on either side of the middle with that side's width. Of 277 published figures of
/// reserved memory, each without its own model (validate memory, "peak reserved"), 10.1 % are above the 90 % quantile,
/// 5.4 % above the 95 % one and none above that of 99 %; a normal would have 7.6 % and 3.6 % for the latter two.
struct MemoryForecast {
  double bytes = 0, low = 0, high = 0;
  EvidenceShares evidence{};  ///< sums to 1
  /// What they are below with a probability between 0 and 1.
  double quantile(double probability) const;
  /// The probability that they are more than that: quantile(1 - p) <= limit where it is at most p.
  double exceeds(double limit) const;
};

/// Of ranks without an allocator of their own that was measured: what is live, as the program says.
MemoryForecast as_live(const LiveMemory& live);

/// Of two parts whose errors have nothing to do with one another: half widths add up as the sides of a right triangle.
MemoryForecast together(const MemoryForecast& a, const MemoryForecast& b);

}  // namespace wt
