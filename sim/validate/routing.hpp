// Predicts measured steps under several placements of a model's experts from the rows that each rank had. A step takes
// what its program's work takes with the fullest rank's rows (routed_step.hpp) times one constant: what the stack adds
// in launches, gathers of weights that are not hidden, and waiting. As the constant is the same for all placements, how
// they compare follows from recorded loads and published kernel times alone.
#pragma once
#include <vector>

#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/cost/kernels/item_times.hpp"
#include "sim/measurements/routing_rows.hpp"
#include "sim/validate/statistics.hpp"

namespace wt {

/// What the constant behind a prediction has not seen.
enum class RoutingLeftOut {
  setting,  ///< the row's model on its data set
  model,    ///< the row's model
};

/// One judged row a measurement of `rows`, in order. The constant is the median over `rows` and `reference`, except
/// what is left out; of rows of other experts or an assumed shape, over such rows alone where there are some. Shape and
/// loads are those of routed_case.hpp; the regime says how near they are, `assumed` what was taken for granted, and
/// intervals of rows with assumptions are at least as wide as those of rows without. The baseline gives every rank the
/// same rows, and has a constant of its own, found the same way.
std::vector<Judged> judge_routing(const std::vector<PlacedStep>& rows, const std::vector<PlacedStep>& reference,
                                  const RoutedContext& context, const ItemTimes& gpus,
                                  const CollectiveEstimator& fabric, RoutingLeftOut left_out = RoutingLeftOut::setting);

}  // namespace wt
