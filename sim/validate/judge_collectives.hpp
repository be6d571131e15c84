// Judges the prices of collectives: the estimator is built without a row's group, asked, and compared with what was
// measured. What is judged is what plans.
#pragma once
#include <vector>

#include "sim/measurements/collective_rows.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// What the estimator behind a prediction has not seen.
enum class LeftOut {
  cluster,  ///< all rows of the row's source on its GPU, nodes, GPUs and fabric
  source,   ///< all rows of its origin: harder, as a source with many node counts says much about each of them
};

/// One judged row a measurement of `rows`, in order. The estimator knows `reference`, except what is of the row's own
/// group. The baseline holds the share of the nominal rate constant: the median of the same rows. Intervals are the
/// estimator's.
std::vector<Judged> judge_collectives(const std::vector<CollectiveRow>& rows,
                                      const std::vector<CollectiveRow>& reference, LeftOut left_out = LeftOut::cluster);

}  // namespace wt
