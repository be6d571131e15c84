// What simulated months say of a drill's scenarios, beside what the drill measured.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "configs/files/measured_recovery.hpp"
#include "planner/experiments/drill.hpp"
#include "sim/months/simulate_scenario.hpp"

namespace wt {

/// The scenario in months of the run, by measured times: who ends is noticed as such, who stands still as a hang.
/// Damaged files are no event there: the recovery after one goes on from the save before. Throws Error{usage} for
/// another run than was measured, and as simulate_scenario.
SimulatedScenario simulate_drill(const DrillInput& input, const MeasuredRecovery& measured);

/// The aim: total recovery times are predicted within this share.
inline constexpr double kRecoveryErrorBar = 0.25;

/// The phases of all its recoveries, summed; what was announced is there to be detected. Of measured ones: none where
/// one was cut short.
RecoveryPhases phases_of(const SimulatedScenario& simulated);
std::optional<RecoveryPhases> phases_of(const std::vector<DrillRestart>& restarts);

/// Seconds from the strike until all that was lost is done again, at least a step, over all recoveries. Others train
/// while a replica rejoins.
double total_recovery_s(const std::vector<DrillRestart>& restarts);
double total_recovery_s(const SimulatedScenario& simulated);

/// Its strikes, one after the other.
nlohmann::json to_json(const SimulatedScenario& simulated);

/// Each case that recovered gets what the others of its run say of it: their medians. `undisturbed`: the folder of each
/// case's run without faults. What was measured goes into DrillResult::measured, an entry a run.
void predict_recoveries(const std::vector<DrillInput>& inputs, const std::vector<std::filesystem::path>& undisturbed,
                        DrillResult& result);

}  // namespace wt
