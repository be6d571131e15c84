// Order statistics of unsorted values: one definition each for every figure that is printed, fitted or judged.
#pragma once
#include <optional>
#include <utility>
#include <vector>

namespace wt {

// All of them throw Error{usage} without values.

double mean(const std::vector<double>& values);

/// Linear between order statistics: type 7 of Hyndman & Fan 1996, the default of R and NumPy. q from 0 to 1.
double quantile(std::vector<double> values, double q);
/// Of an even number the mean of the middle two.
double median(std::vector<double> values);
/// 1.4826 x median absolute deviation from the median, which is the standard deviation of many normal values. Up to
/// half of the values may be wild.
double median_absolute_deviation(const std::vector<double>& values);

/// Least and largest of the values that remain when this share, at most 0.2, is taken away at either end: whole values,
/// rounded up, of fewer than five none.
std::pair<double, double> trimmed_range(std::vector<double> values, double share);
/// Mean of these values.
double trimmed_mean(std::vector<double> values, double share);

/// Spearman's rank correlation of as many x as y, with midranks for ties. Empty below three pairs or where one side
/// does not vary.
std::optional<double> spearman(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace wt
