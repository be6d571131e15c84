// Small fits with non-negative coefficients that minimise the relative error, as times span six decades.
#pragma once
#include <vector>

#include "configs/base/statistics.hpp"

namespace wt {

/// Coefficients c >= 0 minimising sum(((features . c) - target) / scale)^2. Exact, by trying every subset of a handful
/// of features; of equally good ones the one with fewest and earliest features wins, so put the best guess first.
/// `scale` must be positive. Throws Error{usage} without rows.
std::vector<double> fit_non_negative(const std::vector<std::vector<double>>& features,
                                     const std::vector<double>& target, const std::vector<double>& scale);
/// The same with target = scale = seconds: the smallest relative error.
std::vector<double> fit_relative(const std::vector<std::vector<double>>& features, const std::vector<double>& seconds);

}  // namespace wt
