// The report of `windtunnel simulate` on a replayed step.
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
  std::optional<StackMemory> memory;  ///< of processes; none on a host whose ranks share cores
  std::string routing;                ///< RoutingSource::description()
  Evidence routing_evidence = Evidence::assumed;
  double balanced_s = 0;                 ///< the step with balanced loads, where the run gives no routing; otherwise 0
  std::vector<std::string> collectives;  ///< collective_basis(), for times that rest on profiles of GPUs
};

/// Highest memory of any simulated rank in the step's timelines, bytes.
double peak_bytes(const SimulatedRun& step);
/// Memory of one rank.
struct MemoryUse {
  LiveMemory live;
  MemoryForecast allocated, reserved;
  MemoryForecast process;   ///< reserved memory plus memory outside the allocator
  double usable_bytes = 0;  ///< limit of the process; 0 where the cluster gives none
  bool fits() const { return usable_bytes <= 0 || process.high <= usable_bytes; }
};
/// Memory of the simulated rank that needs the largest share of its GPU's memory.
MemoryUse fullest_memory(const SimulatedRun& step);

Report simulate_report(const SimulatedRun& step);

}  // namespace wt
