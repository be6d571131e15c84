// One step of a run file on a cluster, as a user asks for it: times by a stack or by profiles, loads of experts,
// memory, and what the prediction rests on. `simulate` reports it, `explain` compares it with a job's log.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/run.hpp"
#include "configs/files/search_space.hpp"
#include "configs/files/stack.hpp"
#include "sim/cost/memory/stack_memory.hpp"
#include "sim/cost/power/node_power.hpp"
#include "sim/cost/stacks/measured_runs.hpp"
#include "sim/own_runs/own_runs.hpp"
#include "sim/program/memory/memory_moments.hpp"
#include "sim/replay/simulated_step.hpp"

namespace wt {

struct SimulateQuestion {
  RunSpec run;
  std::string run_file;  ///< for errors
  ClusterSpec cluster;
  TimeSources sources;               ///< without formats, which are the run's
  std::vector<std::string> routing;  ///< read_routing; empty: trained loads
  std::vector<MeasuredStep> measured;
};

struct SimulatedRun : SimulatedStep {
  RunSpec run;
  ClusterSpec cluster;
  StackSpec stack;
  std::optional<StackMemory> memory;  ///< of processes; none on a host whose ranks share cores
  std::string basis;                  ///< what the times rest on
  std::shared_ptr<const OpCost> cost;
  std::string routing;  ///< RoutingSource::description()
  Evidence routing_evidence = Evidence::assumed;
  double balanced_s = 0;                ///< the step with balanced loads, where the run gives no routing; otherwise 0
  std::optional<RunFeatures> features;  ///< none on a host whose ranks share cores
  std::optional<PowerSpec> power;       ///< the cluster's, or its GPU's by data sheet; none where neither is known
  std::optional<OwnRuns> own;           ///< measured steps that the times rest on
  std::vector<MemoryMoment> moments;    ///< of the rank of fullest_memory()
  Program fullest_program;              ///< of that rank
  MemoryReplay fullest_replay;
};
/// Throws as make_times(), read_routing() and replay().
SimulatedRun simulated_run(const SimulateQuestion& question);

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

}  // namespace wt
