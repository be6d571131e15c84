// Small fits with non-negative coefficients. They minimise the relative error, because times span six decades.
#pragma once
#include <vector>

#include "configs/base/statistics.hpp"

namespace wt {

/// Coefficients c >= 0 that minimise sum(((features . c) - target) / scale)^2. Exact: every subset of a handful of
/// features is tried. Of equally good subsets the one with the fewest and earliest features wins, so put the best guess
/// first. `scale` must be positive. Throws Error{usage} if there are no rows.
std::vector<double> fit_non_negative(const std::vector<std::vector<double>>& features,
                                     const std::vector<double>& target, const std::vector<double>& scale);
/// The same with target = scale = seconds, which minimises the relative error.
std::vector<double> fit_relative(const std::vector<std::vector<double>>& features, const std::vector<double>& seconds);

}  // namespace wt
