// Order statistics of unsorted values, defined once for every figure that is printed, fitted or judged.
#pragma once
#include <optional>
#include <utility>
#include <vector>

namespace wt {

/// Standard deviations from the middle of a normal law to the ends of its 80 % interval.
inline constexpr double kAt90 = 1.2815515655446004;

// All functions throw Error{usage} for an empty vector.

double mean(const std::vector<double>& values);

/// Linear interpolation: type 7 of Hyndman & Fan 1996, the default of R and NumPy. q from 0 to 1.
double quantile(std::vector<double> values, double q);
/// For an even number of values, the mean of the middle two.
double median(std::vector<double> values);
/// 1.4826 x median absolute deviation from the median: for normal values it estimates the standard deviation. Tolerates
/// outliers in up to half of the values.
double median_absolute_deviation(const std::vector<double>& values);

/// Minimum and maximum after `share` (at most 0.2) of the values is removed at either end. The number removed is
/// rounded up; below five values none is.
std::pair<double, double> trimmed_range(std::vector<double> values, double share);
/// Mean of the values that trimmed_range keeps.
double trimmed_mean(std::vector<double> values, double share);

/// Spearman's rank correlation with midranks for ties. Empty below three pairs or where x or y is constant.
std::optional<double> spearman(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace wt
