// Selects the layouts of a search that are worth comparing under varied times.
#pragma once
#include <cstddef>
#include <vector>

#include "planner/search/search.hpp"

namespace wt {

/// Indices into SearchResult::candidates, the most important first: the fastest, the search's choice and one of another
/// kind. Then, for each kind of layout that is fastest or second under some times: its fastest layout, and the most
/// robust one that ties with it.
std::vector<std::size_t> contenders(const SearchProblem& problem, const SearchResult& search);

}  // namespace wt
