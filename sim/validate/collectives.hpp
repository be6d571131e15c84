// Predicts measured collectives from measurements on other clusters. Time = latency + 2 sqrt(fill x transfer) +
// transfer: what a pipeline takes whose chunks have the best size (each of `fill` seconds of start-up), transfer =
// bytes over a share of the nominal rate of the narrowest resource. Three constants, each a base times a factor for the
// kind of link and one for the fabric by name, both kept near 1 by a prior, so that a fabric never seen has the base's.
#pragma once
#include <vector>

#include "sim/measurements/collective_rows.hpp"
#include "sim/validate/statistics.hpp"

namespace wt {

/// What the fit behind a prediction has not seen.
enum class LeftOut {
  cluster,  ///< all rows of the row's source on its GPU, nodes, GPUs and fabric
  source,   ///< all rows of its source: harder, as a source with many node counts says much about each of them
};

/// One judged row a measurement of `rows`, in order. Fits see `rows` and `reference`, except what is of the row's own
/// group. The baseline holds the share of the nominal rate constant: the median of the same rows.
std::vector<Judged> judge_collectives(const std::vector<CollectiveRow>& rows,
                                      const std::vector<CollectiveRow>& reference, LeftOut left_out = LeftOut::cluster);

/// Messages below this are mostly latency, of which measurements of larger ones, or of other transports, say nothing.
constexpr double kSmallMessage = 64.0 * (1 << 20);

}  // namespace wt
