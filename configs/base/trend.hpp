// How much a series of values scatters, apart from its trend.
#pragma once
#include <vector>

namespace wt {

/// Robust standard deviation around the line through the medians of both halves, so that a series that falls fast has
/// no larger one. 0 for fewer than two values.
double deviation_from_trend(std::vector<double> values);

}  // namespace wt
