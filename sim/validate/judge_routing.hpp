// Compares measured steps under several placements of experts with the code of `windtunnel simulate`. A row's shape and
// layout become a run file, a cluster and a stack (run_files.hpp), and its rank loads become a routing source. Every
// recorded iteration is replayed. Times are those of the row's stack, without what its origin published. Nothing is
// fitted to the rows.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "sim/fit/published_times.hpp"
#include "sim/measurements/routing_rows.hpp"
#include "sim/validate/judged.hpp"

namespace wt {

/// One judged row for each of `rows`, in order: the means over the recorded iterations of the step time and of its
/// simulated interval. routed_case.hpp gives shape and loads. The regime says how closely they match the row, and
/// `assumed` lists the assumptions; intervals do not cover these. The baseline is the same step with even loads.
std::vector<Judged> judge_routing(const std::vector<PlacedStep>& rows, const RoutedContext& context,
                                  const PublishedTimes& published,
                                  const std::function<void(std::size_t done, std::size_t all)>& progress = {});

}  // namespace wt
