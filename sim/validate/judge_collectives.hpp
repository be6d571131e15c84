// Compares measured times of collectives with an estimator that was fitted without the measured row's group. It is the
// estimator that plans use.
#pragma once
#include <vector>

#include "sim/measurements/collective_rows.hpp"
#include "sim/measurements/row_exchange_rows.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// One judged row for each of `rows`, in order. For each, the estimator is fitted to `reference` without the row's
/// group (all rows of its source on its GPU, nodes, GPUs and fabric) or without its origin. The baseline assumes a
/// constant share of the nominal link rate: the median of the other groups' rows with the same form of collective.
/// Intervals of forecasts are the estimator's.
std::vector<Judged> judge_collectives(const std::vector<CollectiveRow>& rows,
                                      const std::vector<CollectiveRow>& reference, LeftOut left_out = LeftOut::group);

/// The same for dispatches and combines, with RowExchangeFit. A group is the rows of one set-up
/// (RowExchangeRow::setup). The baseline assumes the median rate of the other groups' rows. Intervals come from the
/// errors on other groups.
std::vector<Judged> judge_row_exchanges(const std::vector<RowExchangeRow>& rows,
                                        const std::vector<RowExchangeRow>& reference,
                                        LeftOut left_out = LeftOut::group);

}  // namespace wt
