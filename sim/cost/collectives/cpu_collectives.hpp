// Ranks that communicate by CPU (Gloo): a latency, and CPU seconds that share the host's cores with computation. A
// machine of its own kind, of which nothing is published: all is measured.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// One kind over one number of ranks: latency = latency_s + latency_s_per_byte * bytes (time that no core was busy for
/// it), CPU seconds a rank = cpu_s + cpu_s_per_byte * bytes.
struct CpuCollective {
  OpKind kind = OpKind::all_gather;
  std::int64_t ranks = 0;
  double latency_s = 0, latency_s_per_byte = 0;
  double cpu_s = 0, cpu_s_per_byte = 0;
  double relative_spread = 0;
  std::int64_t points = 0;
  Evidence evidence = Evidence::assumed;
};

/// By the nearest number of ranks; a broadcast without a measurement of its own as a gather. Throws Error{usage} naming
/// the benchmark where this kind was not measured.
CollectiveEstimate estimate_by_cpu(const std::vector<CpuCollective>& measured, OpKind kind, double bytes,
                                   std::int64_t ranks);

}  // namespace wt
