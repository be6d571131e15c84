// Intervals from errors on what had no part in a fit: split conformal prediction over groups (Vovk et al. 2005).
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// Lower and upper order statistic of unsorted values that a further value lies between with probability >= 1 - 2 tail;
/// the extremes where there are too few. Throws Error{usage} without values.
std::pair<double, double> conformal_bounds(std::vector<double> values, double tail = 0.1);
/// The same of their sizes: -b and b.
std::pair<double, double> symmetric_bounds(std::vector<double> values, double tail = 0.1);

/// log(measured / predicted) of measurements that had no part in their predictions, by regime (rows that err alike) and by
/// group (rows that were left out together).
class LeftOutErrors {
 public:
  void add(const std::string& regime, const std::string& group, double log_ratio);
  /// What an answer of this regime is multiplied by for the ends of its 80 % interval: the 10th and 90th percentile of
  /// measured over predicted among rows of the same regime and other groups than `without` (order statistics of n + 1, so
  /// that a fresh row falls inside with at least 80 %). Where fewer than kFewestGroups groups are there, too few to tell
  /// which way the next one errs, the 80th percentile of the error's size on either side. As rows of a group err alike,
  /// the tails shrink to G / (G + 2) of theirs with G groups. Regimes with fewer than kFewestErrors such rows take those
  /// of all regimes, and without any the factor 2. An answer never lies outside of its own interval.
  std::pair<double, double> bounds(const std::string& regime, const std::string& without = "") const;

  static constexpr std::size_t kFewestErrors = 10, kFewestGroups = 5;

 private:
  struct Entry {
    std::string group;
    double log_ratio;
  };
  std::map<std::string, std::vector<Entry>> by_regime_;
  std::vector<Entry> all_;
  mutable std::map<std::pair<std::string, std::string>, std::pair<double, double>> known_;
};

}  // namespace wt
