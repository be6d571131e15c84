// Judges the times of collectives: the estimator is built without a row's group, asked, and compared with what was
// measured. What is judged is what plans.
#pragma once
#include <vector>

#include "sim/measurements/collective_rows.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// One judged row a measurement of `rows`, in order. The estimator knows `reference`, except what is of the row's own
/// group (all rows of its source on its GPU, nodes, GPUs and fabric) or origin. The baseline holds the share of the
/// nominal rate constant: the median of the same rows. Intervals are the estimator's.
std::vector<Judged> judge_collectives(const std::vector<CollectiveRow>& rows,
                                      const std::vector<CollectiveRow>& reference, LeftOut left_out = LeftOut::group);

}  // namespace wt
