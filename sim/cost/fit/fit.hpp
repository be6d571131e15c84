// Small fits with non-negative coefficients that minimise the relative error, as times span six decades.
#pragma once
#include <utility>
#include <vector>

namespace wt {

/// Coefficients c >= 0 minimising sum(((features . c) - target) / scale)^2. Exact, by trying every subset of a handful
/// of features; of equally good ones the one with fewest and earliest features wins, so put the best guess first.
/// `scale` must be positive. Throws Error{usage} without rows.
std::vector<double> fit_non_negative(const std::vector<std::vector<double>>& features,
                                     const std::vector<double>& target, const std::vector<double>& scale);
/// The same with target = scale = seconds: the smallest relative error.
std::vector<double> fit_relative(const std::vector<std::vector<double>>& features, const std::vector<double>& seconds);

/// Sum of squared relative errors of such coefficients.
double relative_residual(const std::vector<std::vector<double>>& features, const std::vector<double>& seconds,
                         const std::vector<double>& coefficients);

/// Quantile of unsorted values, linear between order statistics. Throws Error{usage} without values.
double quantile(std::vector<double> values, double q);
/// Least and largest of the values that remain when this share, at most 0.2, is taken away at either end: whole values,
/// rounded up, of fewer than five none. Throws Error{usage} without values.
std::pair<double, double> trimmed_range(std::vector<double> values, double share);
/// Mean of these values.
double trimmed_mean(std::vector<double> values, double share);

}  // namespace wt
