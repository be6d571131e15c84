// Intervals from errors of predictions on data left out of the fit: a random effects model of groups. A new measurement
// differs from its prediction by the mean error, what its group has in common, and what is its own.
#pragma once
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// log(measured / predicted) of one measurement, and its group, whose members have similar errors.
struct LogError {
  std::string group;
  double log_ratio = 0;
};
/// Errors needed for an interval of their own; groups needed for spreads of their own, where pooled ones are known and
/// where not.
constexpr std::size_t kFewestErrors = 10, kFewestGroups = 5, kFewestGroupsAlone = 3;

/// Variances of errors. Members of a group have similar errors, so a group counts as twelve members at most.
struct ErrorSpreads {
  double within = 0;   ///< of members around their group's mean
  double between = 0;  ///< of the groups' true means (Paule and Mandel 1982)
  std::size_t groups = 0;
};
ErrorSpreads spreads_of(const std::vector<LogError>& errors);

/// 80 % interval of log(measured / predicted) for a measurement of a new group: Student's t around the mean of the
/// groups' means, with one degree of freedom less than there are groups. Below kFewestGroups groups the spreads are
/// those of `pooled` errors; without these and below kFewestGroupsAlone, a usual spread between groups. The interval
/// always includes the prediction. Without errors: the factor 2.
std::pair<double, double> log_interval(const std::vector<LogError>& errors,
                                       const std::optional<ErrorSpreads>& pooled = std::nullopt);

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
  /// errors of its kind, and a kind with fewer uses all errors. With fewer than kFewestGroups groups, a regime has the
  /// spreads of all.
  ErrorBounds bounds(const std::string& without = "") const;

 private:
  std::map<std::string, std::vector<LogError>> by_regime_;
  std::vector<LogError> all_;
};

}  // namespace wt
