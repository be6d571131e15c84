#include "planner/plan/simple_alternative.hpp"

#include <algorithm>

#include "configs/base/error.hpp"

namespace wt {
namespace {

constexpr std::int64_t kSimulations = 16;  // a few of its own: the search has the proof, this layout is a comparison

}  // namespace

bool is_simple(const Layout& layout) {
  return layout.tensor == 1 && layout.pipeline == 1 && layout.context == 1 && !layout.exchange_overlap;
}

std::optional<Candidate> simple_alternative(const SearchProblem& problem) {
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

}  // namespace wt
