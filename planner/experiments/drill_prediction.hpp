// Simulates a drill's scenarios, and compares them with the drill's measurements.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "configs/files/measured_recovery.hpp"
#include "planner/experiments/drill.hpp"
#include "sim/months/simulate_scenario.hpp"

namespace wt {

/// Simulates the scenario with measured times. An exit is detected by the agent, a standstill as a hang. Damaged files
/// are no event of their own: the next recovery falls back to the save before. Throws Error{usage} if another run was
/// measured, and as simulate_scenario.
SimulatedScenario simulate_drill(const DrillInput& input, const MeasuredRecovery& measured);

/// The target for the relative error of total recovery times.
inline constexpr double kRecoveryErrorBar = 0.25;

/// Phases summed over all recoveries. The wait for a planned stop counts as detection. For measured restarts: empty if
/// one was cut short.
RecoveryPhases phases_of(const SimulatedScenario& simulated);
std::optional<RecoveryPhases> phases_of(const std::vector<DrillRestart>& restarts);

/// Seconds from the fault until all lost steps are repeated, at least one step, summed over all recoveries. The rejoin
/// of a replica does not count, because the others train.
double total_recovery_s(const std::vector<DrillRestart>& restarts);
double total_recovery_s(const SimulatedScenario& simulated);

/// Its faults, in order.
nlohmann::json to_json(const SimulatedScenario& simulated);

/// Predicts each case that recovered from the medians of the other cases of its run. `undisturbed`: for each case the
/// folder of its run without faults. Adds the measurements to DrillResult::measured, one entry per run.
void predict_recoveries(const std::vector<DrillInput>& inputs, const std::vector<std::filesystem::path>& undisturbed,
                        DrillResult& result);

}  // namespace wt
