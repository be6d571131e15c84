// Judges predictions for somebody who has measured steps of the same job: each published row is predicted as
// judge_runs does, but with other rows of its origin, model and GPU known (sim/cost/stacks/own_steps.hpp).
#pragma once
#include <cstdint>
#include <vector>

#include "sim/validate/judge_runs.hpp"

namespace wt {

struct AnchorsAsked {
  std::int64_t anchors = 1;  ///< known rows, at least 1
  std::uint64_t seed = 0;    ///< draws them
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// The same rows without and with their anchors: those of which there are enough others.
struct AnchoredRuns {
  std::vector<Judged> without, with;
};

/// In order of `rows`. The baseline with anchors has their MFU.
AnchoredRuns judge_anchored_runs(const std::vector<RunRow>& rows, const PublishedTimes& published,
                                 const AnchorsAsked& asked);

}  // namespace wt
