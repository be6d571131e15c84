// Intervals from the errors of other measurements (split conformal prediction, Vovk et al. 2005).
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// Lower and upper order statistic of unsorted values that a further value lies between with probability >= 1 - 2 tail;
/// the extremes where there are too few. Throws Error{usage} without values.
std::pair<double, double> conformal_bounds(std::vector<double> values, double tail = 0.1);
/// The same of their sizes: -b and b.
std::pair<double, double> symmetric_bounds(std::vector<double> values, double tail = 0.1);

/// log(measured / predicted) of one measurement, and what errs alike with it.
struct LogError {
  std::string group;
  double log_ratio = 0;
};
constexpr std::size_t kFewestResiduals = 10, kFewestGroups = 5;

/// 80 % interval of log(measured / predicted) for a measurement of none of these groups: the 10th and 90th percentile;
/// of fewer than kFewestGroups groups, too few to tell which way the next one errs, the 80th percentile of the error's
/// size on either side. As a group's members err alike, the tails shrink to G / (G + 2) of theirs with G groups. The
/// prediction itself is always inside. Without errors the factor 2.
std::pair<double, double> log_interval(const std::vector<LogError>& errors);

}  // namespace wt
