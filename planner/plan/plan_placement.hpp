// Expert placement in a plan: the placements and copies that the search may choose, and their effect.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// Adds a placement for each expert degree of the search, planned on the scenarios and judged on unseen ones; if the
/// stack supports copies, also placements with copies. If loads are not recorded, it is unknown which experts are busy:
/// then nothing is added, and Error{usage} is thrown if the study asks for copies.
void plan_placements(SearchProblem& problem, Plan& plan, const SearchProgress& progress);

/// Compares the chosen layout with two variants: experts in order, and experts balanced over nodes first. Keeps the one
/// with the fastest simulated step that fits.
void judge_placement(const SearchProblem& problem, Plan& plan);

}  // namespace wt
