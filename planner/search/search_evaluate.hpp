// Internals that the search and its evaluation share.
#pragma once
#include <memory>

#include "planner/search/search.hpp"

namespace wt {

/// Sequences of a rank in the microbatches of a step.
Microbatches sequences_of(const SearchProblem& problem, const Layout& layout);
ProgramOptions program_options(const SearchProblem& problem, const Microbatches& sequences);
ProgramOptions program_options(const SearchProblem& problem, const Layout& layout);
/// The mean of the scenarios, each with equal weight, per layer.
std::unique_ptr<RoutingSource> routing_of(const SearchProblem& problem, const Layout& layout);
/// The expert coordinate that receives most rows over all layers: its bound is the tightest.
std::int64_t busiest_rank(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
double first_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
double second_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);

}  // namespace wt
