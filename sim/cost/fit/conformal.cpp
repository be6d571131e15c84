#include "sim/cost/fit/conformal.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "configs/base/error.hpp"

namespace wt {

namespace {
constexpr double kTail = 0.1;  // on either side of an 80 % interval, before it shrinks for few groups
}

std::pair<double, double> conformal_bounds(std::vector<double> values, double tail) {
  if (values.empty()) throw_error(Code::usage, "conformal bounds: found no value, allowed at least one");
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  const auto below = static_cast<std::size_t>(std::floor(tail * (n + 1)));  // rank of the lower bound, from one
  const std::size_t low = below == 0 ? 0 : below - 1;
  return {values[low], values[values.size() - 1 - low]};
}

std::pair<double, double> symmetric_bounds(std::vector<double> values, double tail) {
  if (values.empty()) throw_error(Code::usage, "symmetric bounds: found no value, allowed at least one");
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

void LeftOutErrors::add(const std::string& regime, const std::string& group, double log_ratio) {
  by_regime_[regime].push_back({group, log_ratio});
  all_.push_back({group, log_ratio});
  known_.clear();
}

std::pair<double, double> LeftOutErrors::bounds(const std::string& regime, const std::string& without) const {
  const auto key = std::make_pair(regime, without);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const auto others = [&](std::vector<LogError> errors) {
    std::erase_if(errors, [&](const LogError& e) { return e.group == without; });
    return errors;
  };
  const auto own = by_regime_.find(regime);
  std::vector<LogError> errors = own == by_regime_.end() ? std::vector<LogError>{} : others(own->second);
  if (errors.size() < kFewestErrors) {
    errors.clear();
    const std::string kind = regime.substr(0, regime.find(", "));
    for (const auto& [name, members] : by_regime_)
      if (name.substr(0, name.find(", ")) == kind)
        for (const LogError& each : others(members)) errors.push_back(each);
  }
  if (errors.size() < kFewestErrors) errors = others(all_);
  const auto [low, high] = log_interval(errors);
  return known_[key] = {std::exp(low), std::exp(high)};
}

}  // namespace wt
