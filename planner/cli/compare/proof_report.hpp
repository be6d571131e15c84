// Report sections on what the real trainer proved: predictions against measurements, the timeline of a step, memory per
// rank, recovery.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "planner/experiments/comparison.hpp"
#include "planner/experiments/drill.hpp"
#include "reports/model/report.hpp"

namespace wt {

Table comparison_table(const std::vector<RunComparison>& comparisons);
Table drill_table(const DrillResult& result);
Table recovery_table(const DrillResult& result);
/// Randomly drawn scenarios by kind of fault: number, how many events occurred, how many failed.
Table drawn_table(const std::vector<DrillInput>& inputs, const DrillResult& result);
/// Measured recoveries against those of simulated months, for every case that months can describe.
Table predicted_recovery_table(const DrillResult& result);
/// The phases of recoveries that no further failure interrupted.
Table predicted_phases_table(const DrillResult& result);
/// One row per event, with the scenario's name.
Table simulated_recovery_table(const std::vector<std::pair<std::string, SimulatedScenario>>& simulated);
Section comparison_section(const std::vector<RunComparison>& comparisons);
/// Predicted above measured, for the lanes of two ranks.
Section timeline_section(const RunComparison& comparison);
Section rank_memory_section(const std::vector<RunComparison>& comparisons);
Section drill_section(const DrillResult& result);
/// The verdict.
std::string drill_sentence(const DrillResult& result);

/// A warning if other programs kept more than a tenth of a core busy during a measurement; otherwise "".
std::string disturbance(const std::vector<RunComparison>& comparisons);
/// "on 3 runs it had not seen, step time was off by at most 8.1 %, exposed communication by 4.0 % of the step, peak
/// tensor memory by 0.50 %". If there are none: "every run was part of the calibration, so that ...".
std::string error_sentence(const std::vector<RunComparison>& unseen);

}  // namespace wt
