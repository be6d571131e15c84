// What `windtunnel simulate` says of a replayed step.
#pragma once
#include <string>

#include "configs/spec/cluster.hpp"
#include "configs/spec/run.hpp"
#include "reports/report.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {

struct SimulatedRun : SimulatedStep {
  RunSpec run;
  ClusterSpec cluster;
  std::string routing;  ///< RoutingSource::description()
  Evidence routing_evidence = Evidence::assumed;
};

/// Highest memory of any simulated rank, from the step's timelines; bytes.
double peak_bytes(const SimulatedRun& step);
/// Of a rank.
struct MemoryUse {
  double peak_bytes = 0;
  double usable_bytes = 0;  ///< what its GPU lets it allocate; 0 where the cluster does not say
};
/// Of the simulated rank that uses the largest share of its own GPU's.
MemoryUse fullest_memory(const SimulatedRun& step);

Report simulate_report(const SimulatedRun& step);

}  // namespace wt
