#include "sim/cost/collectives/cpu_collectives.hpp"

#include <algorithm>
#include <cstdlib>

#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"

namespace wt {

CollectiveEstimate estimate_by_cpu(const std::vector<CpuCollective>& measured, OpKind kind, double bytes,
                                   std::int64_t ranks) {
  const auto known = [&](OpKind wanted) {
    return std::ranges::any_of(measured, [&](const CpuCollective& each) { return each.kind == wanted; });
  };
  // A step's collectives need their own measurements. A restore's broadcast brings each rank what an all-gather would.
  const OpKind source = kind == OpKind::broadcast && !known(kind) ? OpKind::all_gather : kind;
  const CpuCollective* nearest = nullptr;
  for (const CpuCollective& each : measured)
    if (each.kind == source && (!nearest || std::abs(each.ranks - ranks) < std::abs(nearest->ranks - ranks)))
      nearest = &each;
  if (!nearest)
    throw_usage(
        "machine model: found no measurement of {} among ranks that communicate by CPU, allowed are measured ones "
        "(nothing is derived from another collective there); run 'windtunnel bench collectives' and calibrate with its "
        "profile",
        to_string(kind));
  const double moved = bytes * bus_share(kind, as_double(ranks)) / bus_share(source, as_double(nearest->ranks));
  const double hops = as_double(ranks - 1) / as_double(nearest->ranks - 1);
  CollectiveEstimate estimate;
  estimate.latency_s = nearest->latency_s * hops + nearest->latency_s_per_byte * moved;
  estimate.cpu_s = nearest->cpu_s * hops + nearest->cpu_s_per_byte * moved;
  estimate.relative_spread = nearest->relative_spread;
  estimate.root = nearest->evidence;
  estimate.evidence =
      nearest->ranks == ranks && source == kind ? nearest->evidence : std::max(nearest->evidence, Evidence::derived);
  return estimate;
}

}  // namespace wt
