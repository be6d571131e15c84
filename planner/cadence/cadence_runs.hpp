// Simulates a run with the chosen cadence, a thousand times.
#pragma once
#include <cstdint>

#include "planner/cadence/cadence.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

/// The inputs from a failure preset: rates and recovery times for a job on `nodes` nodes.
CadenceInput cadence_input(const FailurePreset& preset, std::int64_t nodes, SourcedNumber step_s,
                           SourcedNumber blocking_s, SourcedNumber persist_s, SourcedNumber repair_s);

/// A run of `steps` steps with the cadence and its spares. Failures are exponential; planned stops are the preset's.
/// Slow nodes, maintenance, local saves, silent errors and replica losses are those of the input. The blocking time
/// includes the training lost while a save persists.
RunScenario run_scenario(const CadenceInput& input, const CadencePlan& plan, std::int64_t steps);

struct CadenceRuns {
  RunScenario scenario;
  RunDistribution distribution;
};
/// Throws as simulate_runs.
CadenceRuns simulate_cadence(const CadenceInput& input, const CadencePlan& plan, std::int64_t steps,
                             std::int64_t runs = 1000, std::uint64_t seed = 1);

}  // namespace wt
