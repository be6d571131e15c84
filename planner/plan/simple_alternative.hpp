// The plan's simple alternative: the best layout with the fewest mechanisms, which has more measured relatives and less
// that can go wrong.
#pragma once
#include <optional>
#include <string>

#include "planner/search/search.hpp"

namespace wt {

/// FSDP or HSDP with expert parallelism: no tensor, pipeline or context groups, and no exchanges that overlap another
/// microbatch.
bool is_simple(const Layout& layout);

/// The best simple layout of the problem, within a few simulations. Empty if none fits.
std::optional<Candidate> simple_alternative(const SearchProblem& problem);

}  // namespace wt
