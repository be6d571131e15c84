// Where experts live in a plan: placements and copies that the search may choose, and what became of them.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// A placement for each expert degree that the search may choose, planned on the scenarios and judged on unseen ones,
/// and where the stack runs copies, placements with some. Nothing where loads are not recorded: nobody knows which
/// experts are busy then. Throws Error{usage} where the study asks for copies then.
void plan_placements(SearchProblem& problem, Plan& plan, const SearchProgress& progress);

/// The chosen layout against itself with the experts in order, and balanced over nodes first: the fastest simulated
/// step that fits stays.
void judge_placement(const SearchProblem& problem, Plan& plan);

}  // namespace wt
