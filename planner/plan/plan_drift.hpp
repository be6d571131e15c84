// Whether a plan moves experts while loads drift, and the mean step of such a run.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// Seconds of a move of experts: master weights and optimizer state of the rank that receives or sends the most, at the
/// full bandwidth of its NIC, or of NVLink if the expert group is inside a node. Nothing else runs meanwhile.
double move_seconds(const SearchProblem& problem, const Layout& layout, const Placement& from, const Placement& to);

/// Simulates the chosen layout in each window of the study's drifting loads. Sets Plan::replacement, drift and
/// drift_note.
void judge_drift(const PlanInputs& inputs, const SearchProblem& problem, Plan& plan, const SearchProgress& progress);

}  // namespace wt
