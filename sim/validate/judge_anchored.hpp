// Judges predictions for somebody who has measured steps of the same job: each published row is predicted as
// judge_runs does, but with other rows of its origin, model and GPU known (sim/cost/stacks/own_steps.hpp).
#pragma once
#include <vector>

#include "sim/validate/anchors.hpp"
#include "sim/validate/judge_runs.hpp"

namespace wt {

/// In order of `rows`. The baseline with anchors has their MFU.
AnchoredRows judge_anchored_runs(const std::vector<RunRow>& rows, const PublishedTimes& published,
                                 const AnchorsAsked& asked);

}  // namespace wt
