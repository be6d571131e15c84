// Measured steps under several placements of experts beside what the code behind `windtunnel simulate` says of them. A
// row's shape and layout become a run file, a cluster and a stack (run_files.hpp), its rank loads a routing source, and
// every recorded iteration is replayed. Times are those of the row's stack, without what its origin published: rows
// say nothing of one another, and nothing is fitted here.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "sim/fit/published_times.hpp"
#include "sim/measurements/routing_rows.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// One judged row a measurement of `rows`, in order: the mean over the recorded iterations, with the mean interval that
/// simulations print. Shape and loads are those of routed_case.hpp; the regime says how near they are, `assumed` what
/// was taken for granted, which intervals do not count. The baseline is the same step with even loads.
std::vector<Judged> judge_routing(const std::vector<PlacedStep>& rows, const RoutedContext& context,
                                  const PublishedTimes& published,
                                  const std::function<void(std::size_t done, std::size_t all)>& progress = {});

}  // namespace wt
