// Internals that the search and its evaluation share.
#pragma once
#include <memory>

#include "planner/search/search.hpp"

namespace wt {

/// Sequences of a rank in the microbatches of a step.
Microbatches sequences_of(const SearchProblem& problem, const Layout& layout);
ProgramOptions program_options(const SearchProblem& problem, const Microbatches& sequences);
ProgramOptions program_options(const SearchProblem& problem, const Layout& layout);
/// As the stack deals its layers to stages.
Layout dealt(const SearchProblem& problem, Layout layout);
/// Rows that the experts of a rank receive of so many sequences, where all ranks receive as many.
double even_rows(const SearchProblem& problem, const Layout& layout, std::int64_t sequences);
/// Layers of each chunk, as the stack deals them to stages: of each pipeline once.
class DealtChunks {
 public:
  explicit DealtChunks(const SearchProblem& problem) : problem_(problem) {}
  const std::vector<std::int64_t>& of(const Layout& layout);

 private:
  const SearchProblem& problem_;
  std::map<std::array<std::int64_t, 3>, std::vector<std::int64_t>> known_;  ///< by pipeline, virtual stages, schedule
};
/// StepMemory::needed(); of a layout that does not fit, what the first of its stages that shows it needs at least.
double needed_bytes(const SearchProblem& problem, const Layout& layout);
/// The mean of the scenarios, each with equal weight, per layer.
std::unique_ptr<RoutingSource> routing_of(const SearchProblem& problem, const Layout& layout);
/// The expert coordinate that receives most rows over all layers: its bound is the tightest.
std::int64_t busiest_rank(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
/// Prices of the layout's family.
const OpCost& cost_of(const SearchProblem& problem, const Layout& layout);
/// Seconds that its step takes at least: of lanes and, sharper, of the critical path. Of layouts without a pipeline.
double lane_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
double path_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
/// More robust first: the smaller failure domain (the ranks whose state a lost node takes along), then less of the
/// objective.
bool more_robust(const Candidate& a, const Candidate& b);
/// Words for a layout with its recompute policy and microbatch: no two layouts of a space have the same.
std::string key_of(const Layout& layout);

}  // namespace wt
