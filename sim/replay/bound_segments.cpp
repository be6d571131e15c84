#include "sim/replay/bound_segments.hpp"

namespace wt {

BoundSegment& BoundSegments::of(const Op& op, const BoundRows& rows) {
  auto& segments = segments_[&op];
  auto found = segments.find(rows);
  if (found == segments.end())
    found = segments
                .emplace(Rows{rows.sum, {rows.by_expert.begin(), rows.by_expert.end()}},
                         BoundSegment{cost_.segment(op, rows)})
                .first;
  return found->second;
}

}  // namespace wt
