// Intervals from errors on what had no part in a fit: split conformal prediction over groups (Vovk et al. 2005).
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
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
constexpr std::size_t kFewestErrors = 10, kFewestGroups = 5;

/// 80 % interval of log(measured / predicted) for a measurement of none of these groups: the 10th and 90th percentile
/// (order statistics of n + 1, so that a fresh row falls inside with at least 80 %); of fewer than kFewestGroups
/// groups, too few to tell which way the next one errs, the 80th percentile of the error's size on either side. As a
/// group's members err alike, the tails shrink to G / (G + 2) of theirs with G groups. The prediction itself is always
/// inside. Without errors the factor 2.
std::pair<double, double> log_interval(const std::vector<LogError>& errors);

/// What answers are multiplied by for the ends of their 80 % interval, by regime: answers that err alike.
struct ErrorBounds {
  using Bounds = std::pair<double, double>;
  std::map<std::string, Bounds> by_regime;
  std::map<std::string, Bounds> by_kind;  ///< of the regimes whose names begin alike up to a comma
  Bounds all = {0.5, 2};

  /// The regime's own; where it has none, those of its kind, and else of all.
  const Bounds& of(const std::string& regime) const;
};
void to_json(nlohmann::json& json, const ErrorBounds& bounds);
void from_json(const nlohmann::json& json, ErrorBounds& bounds);

/// Errors of measurements that had no part in their predictions, by regime: rows that err alike.
class LeftOutErrors {
 public:
  void add(const std::string& regime, const std::string& group, double log_ratio);
  /// log_interval of each regime's errors, without those of a group. A regime with fewer than kFewestErrors takes those
  /// of its kind, and a kind with fewer those of all.
  ErrorBounds bounds(const std::string& without = "") const;

 private:
  std::map<std::string, std::vector<LogError>> by_regime_;
  std::vector<LogError> all_;
};

}  // namespace wt
