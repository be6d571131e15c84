#include "sim/cost/kernels/memory_bound.hpp"

#include <algorithm>

#include "sim/cost/ops/overlap.hpp"

namespace wt {
namespace {

// Bytes over the cache's size: full hits below kFitsBelow, full misses above kMissesAbove. A stream that overflows the
// cache a little evicts what it reads next.
constexpr double kFitsBelow = 0.7, kMissesAbove = 1.2;
constexpr double kSharpness = 4;  // power of overlapped_s: two times within a tenth of each other add a sixth

}  // namespace

double memory_bound_time_s(const RowKernel& kernel, const DataSheet& gpu, const MemoryBoundConstants& c) {
  const double missed =
      std::clamp((kernel.bytes / gpu.cache_bytes - kFitsBelow) / (kMissesAbove - kFitsBelow), 0.0, 1.0);
  const double moving = kernel.bytes / gpu.memory_Bps * ((1 - missed) / c.cache_share + missed / c.memory_share);
  const double pass = c.pass_s * kernel.width;
  return c.launch_s + overlapped_s(moving, pass, kSharpness);
}

MemoryBoundConstants typical_memory_bound() { return {2e-6, 0.5e-9, 0.8, 0.7}; }

}  // namespace wt
