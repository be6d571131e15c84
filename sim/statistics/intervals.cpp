#include "sim/statistics/intervals.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

namespace wt {

namespace {
constexpr double kQuantile = 0.9;            // upper end of an 80 % interval
constexpr double kMostMembers = 12;          // as which a group counts
constexpr double kUsualBetween = 0.14;       // standard deviation of origins' errors of step times within a family
constexpr double kLargestBetween = 100;      // variance: far beyond any error
constexpr int kBits = 40, kMostSteps = 200;  // of the root of Paule and Mandel's equation

struct GroupMean {
  double mean = 0, members = 0;
  double squares = 0;  ///< sum of the squared distances from the mean
};

std::vector<GroupMean> means_of(const std::vector<LogError>& errors) {
  std::map<std::string, GroupMean> groups;
  for (const LogError& e : errors) {
    GroupMean& g = groups[e.group];
    const double distance = e.log_ratio - g.mean;
    g.mean += distance / ++g.members;
    g.squares += distance * (e.log_ratio - g.mean);
  }
  std::vector<GroupMean> out;
  for (const auto& [name, group] : groups) out.push_back(group);
  return out;
}

/// Mean of the groups' means, weighted by the inverse of their variances, and its own variance.
struct WeightedMean {
  double mean = 0, variance = 0;
};
WeightedMean weighted_mean(const std::vector<GroupMean>& groups, double within, double between) {
  double weights = 0, sum = 0;
  for (const GroupMean& g : groups) {
    const double weight = 1 / std::max(1e-12, between + within / std::min(g.members, kMostMembers));
    weights += weight, sum += weight * g.mean;
  }
  return {sum / weights, 1 / weights};
}

double within_of(const std::vector<GroupMean>& groups) {
  double sum = 0, weights = 0;
  for (const GroupMean& g : groups) {
    if (g.members < 2) continue;
    const double weight = std::min(g.members, kMostMembers) - 1;
    sum += weight * g.squares / (g.members - 1), weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}

/// The variance with which the groups' squared distances, over their variances, sum to the degrees of freedom.
double between_of(const std::vector<GroupMean>& groups, double within) {
  const double degrees = static_cast<double>(groups.size()) - 1;
  const auto excess = [&](double between) {
    const double mean = weighted_mean(groups, within, between).mean;
    double sum = -degrees;
    for (const GroupMean& g : groups) {
      const double distance = g.mean - mean;
      sum += distance * distance / std::max(1e-12, between + within / std::min(g.members, kMostMembers));
    }
    return sum;
  };
  if (degrees < 1 || excess(0) <= 0) return 0;
  std::uintmax_t steps = kMostSteps;
  const auto [low, high] = boost::math::tools::toms748_solve(excess, 0.0, kLargestBetween,
                                                             boost::math::tools::eps_tolerance<double>(kBits), steps);
  return (low + high) / 2;
}

std::string kind_of(const std::string& regime) { return regime.substr(0, regime.find(", ")); }

}  // namespace

ErrorSpreads spreads_of(const std::vector<LogError>& errors) {
  const std::vector<GroupMean> groups = means_of(errors);
  const double within = within_of(groups);
  return {within, between_of(groups, within), groups.size()};
}

std::pair<double, double> log_interval(const std::vector<LogError>& errors, const std::optional<ErrorSpreads>& pooled) {
  if (errors.empty()) return {-std::log(2.0), std::log(2.0)};
  ErrorSpreads spreads = spreads_of(errors);
  const std::vector<GroupMean> groups = means_of(errors);
  if (spreads.groups < (pooled ? kFewestGroups : kFewestGroupsAlone)) {
    const bool has_own_within = errors.size() >= spreads.groups + kFewestErrors;
    const ErrorSpreads usual =
        pooled.value_or(ErrorSpreads{spreads.within, kUsualBetween * kUsualBetween, kFewestGroupsAlone});
    spreads = {has_own_within ? spreads.within : usual.within, usual.between, usual.groups};
  }
  const WeightedMean middle = weighted_mean(groups, spreads.within, spreads.between);
  const boost::math::students_t distribution(static_cast<double>(std::max<std::size_t>(spreads.groups, 2)) - 1);
  const double half =
      boost::math::quantile(distribution, kQuantile) * std::sqrt(spreads.between + spreads.within + middle.variance);
  return {std::min(0.0, middle.mean - half), std::max(0.0, middle.mean + half)};
}

const ErrorBounds::Bounds& ErrorBounds::of(const std::string& regime) const {
  if (const auto own = by_regime.find(regime); own != by_regime.end()) return own->second;
  const auto kind = by_kind.find(kind_of(regime));
  return kind == by_kind.end() ? all : kind->second;
}

void to_json(nlohmann::json& json, const ErrorBounds& b) {
  json = {{"by_regime", b.by_regime}, {"by_kind", b.by_kind}, {"all", b.all}};
}

void from_json(const nlohmann::json& json, ErrorBounds& b) {
  json.at("by_regime").get_to(b.by_regime);
  json.at("by_kind").get_to(b.by_kind);
  json.at("all").get_to(b.all);
}

void LeftOutErrors::add(const std::string& regime, const std::string& group, double log_ratio) {
  by_regime_[regime].push_back({group, log_ratio});
  all_.push_back({group, log_ratio});
}

ErrorBounds LeftOutErrors::bounds(const std::string& without) const {
  const auto others = [&](std::vector<LogError> errors) {
    std::erase_if(errors, [&](const LogError& e) { return e.group == without; });
    return errors;
  };
  // A group has one error in common in each regime. The degrees of freedom are those of the groups alone.
  std::vector<LogError> cells;
  for (const auto& [regime, members] : by_regime_)
    for (const LogError& e : others(members)) cells.push_back({regime + "\n" + e.group, e.log_ratio});
  ErrorSpreads pooled = spreads_of(cells);
  const std::vector<LogError> all = others(all_);
  pooled.groups = means_of(all).size();
  const auto factors = [&](const std::vector<LogError>& errors) {
    const auto [low, high] =
        log_interval(errors, pooled.groups < kFewestGroupsAlone ? std::nullopt : std::optional(pooled));
    return ErrorBounds::Bounds{std::exp(low), std::exp(high)};
  };
  ErrorBounds out;
  out.all = factors(all);
  std::map<std::string, std::vector<LogError>> kinds;
  for (const auto& [regime, members] : by_regime_) {
    const std::vector<LogError> errors = others(members);
    std::vector<LogError>& kind = kinds[kind_of(regime)];
    kind.insert(kind.end(), errors.begin(), errors.end());
    if (errors.size() >= kFewestErrors) out.by_regime[regime] = factors(errors);
  }
  for (const auto& [kind, errors] : kinds)
    if (errors.size() >= kFewestErrors) out.by_kind[kind] = factors(errors);
  return out;
}

}  // namespace wt
