// Whether a space has a layout, axis by axis: for runs whose layout somebody else chose.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/search/search.hpp"

namespace wt {

/// An axis by its key in the map `search` of a study.
struct AxisDifference {
  std::string axis, found, nearest;
};

struct SpaceMember {
  std::int64_t layouts = 0;            ///< of the space
  std::optional<Layout> nearest = {};  ///< the layout of the space that differs in fewest axes; none: an empty space
  std::vector<AxisDifference> differences = {};  ///< of that one; empty = the space has the layout
  bool inside() const { return nearest && differences.empty(); }
};

/// Compares every axis that a search chooses. How layers are dealt to the chunks of a pipeline is the stack's rule and
/// no axis; nor is the placement of experts. Takes as long as counting the space.
SpaceMember find_in_space(const SearchProblem& problem, const Layout& layout);

}  // namespace wt
