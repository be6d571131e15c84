// Memory of a GPU as plans state it: bytes, interval and evidence.
#pragma once
#include "configs/files/evidence.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

/// What a measurement of memory counts, on the GPU with the most.
enum class MemoryOf {
  nothing,         ///< not measured
  peak_allocated,  ///< tensors: torch.cuda.max_memory_allocated
  peak_reserved,   ///< the allocator's blocks: torch.cuda.max_memory_reserved
  peak,            ///< the source does not say whether allocated or reserved
  states,          ///< parameters, gradients and optimizer state of the layers alone
  activations,     ///< what the layers keep for backward alone
};

/// Bytes on a GPU with their 80 % interval: the 10 %, 50 % and 90 % quantiles. On each side of the middle, other
/// quantiles follow Student's t with two degrees of freedom, with that side's width. Check on 277 published figures of
/// reserved memory, each predicted without its own model (validate memory, "peak reserved"): 10.1 % are above the 90 %
/// quantile, 5.4 % above the 95 % quantile and none above the 99 % quantile. With a normal distribution, the latter two
/// would be 7.6 % and 3.6 %.
struct MemoryForecast {
  double bytes = 0, low = 0, high = 0;
  EvidenceShares evidence{};  ///< sums to 1
  /// The bytes that memory stays below with this probability, between 0 and 1.
  double quantile(double probability) const;
  /// The probability that memory exceeds `limit` bytes. If it is at most p, quantile(1 - p) <= limit.
  double exceeds(double limit) const;
};

/// Forecast for ranks without a measured allocator: the program's live memory.
MemoryForecast as_live(const LiveMemory& live);

/// Sum of two parts with independent errors: the half widths of their intervals add up as squares.
MemoryForecast together(const MemoryForecast& a, const MemoryForecast& b);

}  // namespace wt
