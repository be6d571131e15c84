// Sets of moments as lists of intervals, for work that runs at once on several streams.
#pragma once
#include <utility>
#include <vector>

namespace wt {

using Interval = std::pair<double, double>;  ///< begin and end, s
using Intervals = std::vector<Interval>;

/// Sorted, and those that touch joined.
Intervals merged(Intervals all);
/// Length of merged intervals.
double seconds(const Intervals& merged);
/// What of `a` is not in `b`; both merged.
Intervals without(const Intervals& a, const Intervals& b);

}  // namespace wt
