// Whether a space has a layout that someone else chose, axis by axis.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/search/search.hpp"

namespace wt {

/// An axis in which two layouts differ, by its key in the map `search` of a study.
struct AxisDifference {
  std::string axis, found, nearest;
};

struct SpaceMember {
  std::int64_t layouts = 0;  ///< size of the space
  /// The layout of the space that differs in the fewest axes; empty for an empty space.
  std::optional<Layout> nearest = {};
  std::vector<AxisDifference> differences = {};  ///< between `nearest` and the layout; empty = the space has the layout
  bool inside() const { return nearest && differences.empty(); }
};

/// Compares every axis that a search chooses. The distribution of layers over chunks (a rule of the stack) and the
/// placement of experts are not axes. Takes as long as counting the space.
SpaceMember find_in_space(const SearchProblem& problem, const Layout& layout);

}  // namespace wt
