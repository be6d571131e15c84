// Intervals from errors of predictions on data left out of the fit: split conformal prediction over groups (Vovk et al.
// 2005).
#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// Lower and upper order statistic of unsorted values. A further value lies between them with probability >= 1 - 2
/// tail. With too few values, the extremes. Throws Error{usage} if there are no values.
std::pair<double, double> conformal_bounds(std::vector<double> values, double tail = 0.1);
/// The same with the values' magnitudes: returns -b and b.
std::pair<double, double> symmetric_bounds(std::vector<double> values, double tail = 0.1);

/// log(measured / predicted) of one measurement, and its group, whose members have similar errors.
struct LogError {
  std::string group;
  double log_ratio = 0;
};
constexpr std::size_t kFewestErrors = 10, kFewestGroups = 5;

/// 80 % interval of log(measured / predicted) for a measurement of a new group: the 10th and 90th percentile (order
/// statistics of n + 1, so that a new row falls inside with at least 80 %). Below kFewestGroups groups, the sign of the
/// next error is not predictable: the 80th percentile of the magnitude on either side. As members of a group have
/// similar errors, the tails shrink to G / (G + 2) of their size with G groups. The interval always includes the
/// prediction. Without errors: the factor 2.
std::pair<double, double> log_interval(const std::vector<LogError>& errors);

/// Factors from a prediction to the ends of its 80 % interval, by regime (predictions with similar errors).
struct ErrorBounds {
  using Bounds = std::pair<double, double>;
  std::map<std::string, Bounds> by_regime;
  std::map<std::string, Bounds> by_kind;  ///< the kind is the regime's name up to its first comma
  Bounds all = {0.5, 2};

  /// The factors of the regime, else of its kind, else of all.
  const Bounds& of(const std::string& regime) const;
};
void to_json(nlohmann::json& json, const ErrorBounds& bounds);
void from_json(const nlohmann::json& json, ErrorBounds& bounds);

/// Errors of predictions that were fitted without the measurement, by regime (rows with similar errors).
class LeftOutErrors {
 public:
  void add(const std::string& regime, const std::string& group, double log_ratio);
  /// log_interval of each regime's errors, without those of a group. A regime with fewer than kFewestErrors uses the
  /// errors of its kind, and a kind with fewer uses all errors.
  ErrorBounds bounds(const std::string& without = "") const;

 private:
  std::map<std::string, std::vector<LogError>> by_regime_;
  std::vector<LogError> all_;
};

}  // namespace wt
