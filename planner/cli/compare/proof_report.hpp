// What the real trainer proved, as report sections: predictions against measurements, the timeline of a step, memory
// per rank, recovery.
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
/// Of scenarios that were drawn, by kind of fault: how many, how often they struck, how many failed.
Table drawn_table(const std::vector<DrillInput>& inputs, const DrillResult& result);
/// Each case that months could be asked about: what they say, beside what was measured.
Table predicted_recovery_table(const DrillResult& result);
/// Of those that were not cut short: each phase.
Table predicted_phases_table(const DrillResult& result);
/// A row a strike, with the scenario's name.
Table simulated_recovery_table(const std::vector<std::pair<std::string, SimulatedScenario>>& simulated);
Section comparison_section(const std::vector<RunComparison>& comparisons);
/// Predicted above measured, lanes of two ranks.
Section timeline_section(const RunComparison& comparison);
Section rank_memory_section(const std::vector<RunComparison>& comparisons);
Section drill_section(const DrillResult& result);
/// The verdict.
std::string drill_sentence(const DrillResult& result);

/// Says so when other programs kept more than a tenth of a core busy during a measurement; else "".
std::string disturbance(const std::vector<RunComparison>& comparisons);
/// "on 3 runs it had not seen, step time was off by at most 8.1 %, exposed communication by 4.0 % of the step, peak
/// tensor memory by 0.50 %"; without any: "every run was part of the calibration, so that ...".
std::string error_sentence(const std::vector<RunComparison>& unseen);

}  // namespace wt
