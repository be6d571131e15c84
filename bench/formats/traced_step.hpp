// Where a step's time goes on one GPU: computation, communication that nothing hides, copies, and nothing at all.
// Definitions as of Meta's Holistic Trace Analysis: kernels of all streams are merged, so that what runs at once counts
// once.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "bench/formats/gpu_trace.hpp"

namespace wt {

struct TracedStep {
  std::int64_t steps = 0;    ///< that are marked in the trace; 0 = it has no marks
  double span_s = 0;         ///< from the first kernel's start to the last one's end
  double compute_s = 0;      ///< some kernel computes
  double exposed_s = 0;      ///< a collective runs and nothing computes
  double copies_s = 0;       ///< copies alone
  double idle_s = 0;         ///< nothing runs: the host, the input or another rank is waited for without a kernel
  double collectives_s = 0;  ///< some collective runs, hidden or not
  std::array<double, 8> class_s{};  ///< busy time by KernelClass; overlapping kernels count fully
  /// Exposed time by the group that the collective names: "mesh_shard, all_gather". What two of them leave exposed
  /// together counts for both.
  std::map<std::string, double> exposed_by_group;

  /// Share of the collectives' time behind computation; 1 without collectives.
  double hidden() const { return collectives_s > 0 ? 1 - exposed_s / collectives_s : 1; }
};

/// Sums over the whole trace.
TracedStep traced_step(const GpuTrace& trace);

}  // namespace wt
