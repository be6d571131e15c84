#include "planner/plan/simple_alternative.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr std::int64_t kSimulations = 16;  // a few of its own: the search has the proof, this layout is a comparison

}  // namespace

bool is_simple(const Layout& layout) {
  return layout.tensor == 1 && layout.pipeline == 1 && layout.context == 1 && !layout.exchange_overlap;
}

std::optional<Candidate> simple_alternative(const SearchProblem& problem) {
  const auto allows = [](const auto& axis, auto value) { return axis.empty() || std::ranges::count(axis, value) > 0; };
  const SearchSpec& asked = problem.space;
  if (!allows(asked.tensor_degrees, 1) || !allows(asked.pipeline_degrees, 1) || !allows(asked.context_degrees, 1) ||
      !allows(asked.virtual_stages, 1) || !allows(asked.exchange_overlap, false))
    return std::nullopt;  // the study wants others
  SearchProblem simple = problem;
  SearchSpec& space = simple.space;
  space.tensor_degrees = space.pipeline_degrees = space.context_degrees = space.virtual_stages = {1};
  space.schedules = {Schedule::one_f_one_b};
  space.expert_tensor_degrees.clear();
  space.context_ring.clear();
  space.sequence_parallel.clear();
  space.exchange_overlap = {false};
  space.simulations = std::min(space.simulations, kSimulations);
  try {
    const SearchResult found = search_layouts(simple);
    return found.candidates[found.best];
  } catch (const Error& e) {
    if (e.code() != Code::finding && e.code() != Code::usage) throw;
    return std::nullopt;  // none fits, or the study's axes leave none
  }
}

Lead lead_over(const Candidate& simple, const Candidate& layout, const RunFeatures& of,
               const std::vector<MeasuredRun>& runs) {
  const auto spread = [](const Candidate& c) { return std::sqrt(c.result->high_s / c.result->low_s); };
  const std::vector<Relative> near = relatives(of, runs, 1);
  return {simple.value / layout.value - 1, spread(layout) / spread(simple) - 1,
          near.empty() ? std::numeric_limits<double>::infinity() : near.front().doublings};
}

}  // namespace wt
