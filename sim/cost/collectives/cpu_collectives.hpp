// Collectives of ranks that communicate by CPU (Gloo): a latency, and CPU seconds on the host's cores, which
// computation shares. All constants are measured, because no times of such machines are published.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// One kind over one number of ranks: latency = latency_s + latency_s_per_byte * bytes (no core is busy in this time),
/// CPU seconds of a rank = cpu_s + cpu_s_per_byte * bytes.
struct CpuCollective {
  OpKind kind = OpKind::all_gather;
  std::int64_t ranks = 0;
  double latency_s = 0, latency_s_per_byte = 0;
  double cpu_s = 0, cpu_s_per_byte = 0;
  double relative_spread = 0;
  std::int64_t points = 0;
  Evidence evidence = Evidence::assumed;
};

/// From the nearest measured number of ranks. A broadcast that was not measured takes as long as an all-gather. Throws
/// Error{usage} with the benchmark to run if the kind was not measured.
CollectiveEstimate estimate_by_cpu(const std::vector<CpuCollective>& measured, OpKind kind, double bytes,
                                   std::int64_t ranks);

}  // namespace wt
