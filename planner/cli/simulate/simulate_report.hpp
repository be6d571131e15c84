// The report of `windtunnel simulate` on a replayed step.
#pragma once
#include <optional>
#include <string>

#include "configs/files/cluster.hpp"
#include "configs/files/run.hpp"
#include "configs/files/search_space.hpp"
#include "reports/model/report.hpp"
#include "sim/cost/memory/stack_memory.hpp"
#include "sim/cost/stacks/measured_runs.hpp"
#include "sim/program/memory/memory_moments.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {

struct SimulatedRun : SimulatedStep {
  RunSpec run;
  ClusterSpec cluster;
  std::optional<StackMemory> memory;  ///< of processes; none on a host whose ranks share cores
  std::string routing;                ///< RoutingSource::description()
  Evidence routing_evidence = Evidence::assumed;
  double balanced_s = 0;                 ///< the step with balanced loads, where the run gives no routing; otherwise 0
  std::optional<RunFeatures> features;   ///< none on a host whose ranks share cores
  std::vector<std::string> collectives;  ///< collective_basis(), for times that rest on profiles of GPUs
  std::vector<MemoryMoment> moments;     ///< of the rank of fullest_memory()
};

/// Highest memory of any simulated rank in the step's timelines, bytes.
double peak_bytes(const SimulatedRun& step);
/// Memory of one rank.
struct MemoryUse {
  std::int64_t rank = 0;
  LiveMemory live;
  MemoryForecast allocated, reserved;
  MemoryForecast process;   ///< reserved memory plus memory outside the allocator
  double usable_bytes = 0;  ///< limit of the process; 0 where the cluster gives none
  /// Probability that the process exceeds the limit.
  double runs_out() const { return usable_bytes > 0 ? process.exceeds(usable_bytes) : 0; }
  /// By the rule of plans (SearchSpec::memory_risk).
  bool fits() const { return runs_out() <= SearchSpec{}.memory_risk; }
};
/// Memory of the simulated rank that needs the largest share of its GPU's memory.
MemoryUse fullest_memory(const SimulatedRun& step);

Report simulate_report(const SimulatedRun& step);

}  // namespace wt
