// Functions shared by the search and its evaluation of layouts.
#pragma once
#include <memory>

#include "planner/search/search.hpp"
#include "sim/question/step_program.hpp"

namespace wt {

/// Sequences per rank in the microbatches of a step.
Microbatches sequences_of(const SearchProblem& problem, const Layout& layout);
ProgramOptions program_options(const SearchProblem& problem, const Microbatches& sequences);
ProgramOptions program_options(const SearchProblem& problem, const Layout& layout);
StepProgram step_program(const SearchProblem& problem, const Layout& layout);
/// The layout with its layers distributed to stages by the stack's rule.
Layout with_stack_chunks(const SearchProblem& problem, Layout layout);
/// Rows that a rank's experts receive from `sequences` sequences per rank, if all ranks receive equally many.
double even_rows(const SearchProblem& problem, const Layout& layout, std::int64_t sequences);
/// Layers of each chunk, by the stack's rule. Cached by pipeline.
class StackChunks {
 public:
  explicit StackChunks(const SearchProblem& problem) : problem_(problem) {}
  const std::vector<std::int64_t>& of(const Layout& layout);

 private:
  const SearchProblem& problem_;
  std::map<std::array<std::int64_t, 3>, std::vector<std::int64_t>> known_;  ///< by pipeline, virtual stages, schedule
};
/// StepMemory::needed(). For a layout that does not fit, a lower bound from the first stage that exceeds the limit.
double needed_bytes(const SearchProblem& problem, const Layout& layout);
/// The mean of the scenarios with equal weights, by layer.
std::unique_ptr<RoutingSource> routing_of(const SearchProblem& problem, const Layout& layout);
/// The expert coordinate with the most rows over all layers. It gives the sharpest bound.
std::int64_t busiest_rank(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
/// Errors of predicted steps of the layout's family.
StepRatiosByKind off_by(const SearchProblem& problem, const Layout& layout);
/// Lower bounds of the step in seconds, from lanes and, sharper, from the critical path. Only for layouts without a
/// pipeline.
double lane_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
double path_bound(const SearchProblem& problem, const Layout& layout, const RoutingSource& routing);
/// Whether `a` is more robust: a smaller failure domain (the ranks that lose their state with a node), then a smaller
/// objective.
bool more_robust(const Candidate& a, const Candidate& b);
/// A unique text for each layout of a space, with its recompute policy and microbatch.
std::string key_of(const Layout& layout);

}  // namespace wt
