// Whether a plan places experts anew while loads drift, and the mean step of a run that does.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// Seconds in which experts move: masters and optimizer state of the rank that gets or sends most, at the full
/// bandwidth of its adapter, or of NVLink where an expert group is inside a node. Nothing else runs meanwhile.
double move_seconds(const SearchProblem& problem, const Layout& layout, const Placement& from, const Placement& to);

/// The chosen layout in each window of the study's drifting loads, simulated; fills Plan::replacement, drift and
/// drift_note.
void judge_drift(const PlanInputs& inputs, const SearchProblem& problem, Plan& plan, const SearchProgress& progress);

}  // namespace wt
