// Which of a search's layouts are worth comparing where prices are off.
#pragma once
#include <cstddef>
#include <vector>

#include "planner/search/search.hpp"

namespace wt {

/// Of SearchResult::candidates, the most important first: the search's fastest, its choice and one of another kind;
/// then, of each kind of layout that is the fastest under some prices, or next in line, the fastest and the most robust
/// of its ties.
std::vector<std::size_t> contenders(const SearchProblem& problem, const SearchResult& search);

}  // namespace wt
