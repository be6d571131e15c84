// What `windtunnel simulate` says of a replayed step.
#pragma once
#include <optional>
#include <string>

#include "configs/files/cluster.hpp"
#include "configs/files/run.hpp"
#include "reports/model/report.hpp"
#include "sim/cost/memory/stack_memory.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {

struct SimulatedRun : SimulatedStep {
  RunSpec run;
  ClusterSpec cluster;
  std::optional<StackMemory> memory;  ///< what processes take; none on a host whose ranks share cores
  std::string routing;                ///< RoutingSource::description()
  Evidence routing_evidence = Evidence::assumed;
  double balanced_s = 0;  ///< the step with balanced loads, where nobody said which experts tokens go to; else 0
  std::vector<std::string> collectives;  ///< collective_basis() of prices that rest on profiles of GPUs
};

/// Highest memory of any simulated rank, from the step's timelines; bytes.
double peak_bytes(const SimulatedRun& step);
/// Of a rank.
struct MemoryUse {
  LiveMemory live;
  MemoryForecast allocated, reserved;
  MemoryForecast process;   ///< reserved, and what is outside of the allocator
  double usable_bytes = 0;  ///< what its process may take; 0 where the cluster does not say
  bool fits() const { return usable_bytes <= 0 || process.high <= usable_bytes; }
};
/// Of the simulated rank that needs the largest share of its own GPU's.
MemoryUse fullest_memory(const SimulatedRun& step);

Report simulate_report(const SimulatedRun& step);

}  // namespace wt
