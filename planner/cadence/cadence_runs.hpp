// A cadence put to the test: the run it belongs to, simulated a thousand times.
#pragma once
#include <cstdint>

#include "planner/cadence/cadence.hpp"
#include "sim/months/simulate_run.hpp"

namespace wt {

/// The inputs that a failure preset gives: rates and recovery times for a job on `nodes` nodes.
CadenceInput cadence_input(const FailurePreset& preset, std::int64_t nodes, SourcedNumber step_s,
                           SourcedNumber blocking_s, SourcedNumber persist_s, SourcedNumber repair_s);

/// The run of `steps` steps that the cadence is meant for, with its spares; exponential failures; the
/// preset's planned stops; slow nodes, maintenance, local saves, silent errors and tolerated losses of replicas where
/// the input has them. What training loses while a save persists is part of the save's blocking time.
RunScenario run_scenario(const CadenceInput& input, const CadencePlan& plan, std::int64_t steps);

struct CadenceRuns {
  RunScenario scenario;
  RunDistribution distribution;
};
/// Throws as simulate_runs.
CadenceRuns simulate_cadence(const CadenceInput& input, const CadencePlan& plan, std::int64_t steps,
                             std::int64_t runs = 1000, std::uint64_t seed = 1);

}  // namespace wt
