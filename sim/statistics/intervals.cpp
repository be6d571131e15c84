#include "sim/statistics/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "configs/base/error.hpp"

namespace wt {

namespace {
constexpr double kTail = 0.1;  // probability on either side of an 80 % interval, before it is reduced for few groups

std::string kind_of(const std::string& regime) { return regime.substr(0, regime.find(", ")); }

}  // namespace

std::pair<double, double> conformal_bounds(std::vector<double> values, double tail) {
  if (values.empty()) throw_usage("conformal bounds: found no value, allowed at least one");
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto below = static_cast<std::size_t>(std::floor(tail * (n + 1)));  // rank of the lower bound, counted from 1
  const std::size_t low = below == 0 ? 0 : below - 1;
  return {values[low], values[values.size() - 1 - low]};
}

std::pair<double, double> symmetric_bounds(std::vector<double> values, double tail) {
  if (values.empty()) throw_usage("symmetric bounds: found no value, allowed at least one");
  for (double& value : values) value = std::abs(value);
  std::sort(values.begin(), values.end());
  const auto place = static_cast<std::size_t>(std::ceil((1 - 2 * tail) * static_cast<double>(values.size() + 1)));
  const double bound = values[std::min(place, values.size()) - 1];
  return {-bound, bound};
}

std::pair<double, double> log_interval(const std::vector<LogError>& errors) {
  std::vector<double> ratios;
  std::set<std::string> groups;
  for (const LogError& e : errors) ratios.push_back(e.log_ratio), groups.insert(e.group);
  if (ratios.empty()) ratios = {-std::log(2.0), std::log(2.0)};
  const auto count = static_cast<double>(groups.size());
  const double tail = kTail * count / (count + 2);
  const auto [low, high] =
      groups.size() < kFewestGroups ? symmetric_bounds(ratios, tail) : conformal_bounds(ratios, tail);
  return {std::min(0.0, low), std::max(0.0, high)};
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
  const auto factors = [](const std::vector<LogError>& errors) {
    const auto [low, high] = log_interval(errors);
    return ErrorBounds::Bounds{std::exp(low), std::exp(high)};
  };
  ErrorBounds out;
  out.all = factors(others(all_));
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
