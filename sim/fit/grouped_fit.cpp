#include "sim/fit/grouped_fit.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "configs/base/statistics.hpp"
#include "sim/statistics/non_negative_fit.hpp"

namespace wt {
namespace {

// Squared spread of a library's rows over that of libraries: 6 and 13 % (configs/measurements/grouped_products.csv). A
// library with one row keeps five sixths of its difference from the others.
constexpr double kRowsToTrust = 0.2;
constexpr int kMostTurns = 50;
constexpr double kSettled = 1e-9;  // change of a factor's logarithm

/// What `out` leaves out together with a point.
std::string kept_apart_by(GroupedOut out, const KernelPoint& p) {
  switch (out) {
    case GroupedOut::shape:
      return p.group;
    case GroupedOut::library:
      return p.shape.implementation;
    case GroupedOut::origin:
      return p.origin;
    case GroupedOut::nothing:
      break;
  }
  return "";
}

/// Logarithms of the libraries' factors, by name.
using LogFactors = std::map<std::string, double>;

std::string name_of_factor(const KernelPoint& p) {
  return grouped_factor_name(p.shape.implementation, p.shape.weight_gradient);
}

std::vector<double> fit_terms(const std::vector<KernelPoint>& products, const LogFactors& factors) {
  std::vector<std::vector<double>> features;
  std::vector<double> seconds;
  for (const KernelPoint& p : products) {
    const auto terms = grouped_terms(p.grouped(), p.gpu);
    const double factor = std::exp(factors.at(name_of_factor(p)));
    std::vector<double>& row = features.emplace_back();
    for (const double term : terms) row.push_back(factor * term);
    seconds.push_back(p.seconds);
  }
  return fit_relative(features, seconds);
}

/// The factors that the constants leave to explain. Their median over libraries is 1, the factor of an unknown one.
LogFactors fit_factors(const std::vector<KernelPoint>& products, const std::vector<double>& constants) {
  struct Sum {
    double logs = 0, rows = 0;
    bool weight_gradient = false;
  };
  std::map<std::string, Sum> sums;
  for (const KernelPoint& p : products) {
    const auto terms = grouped_terms(p.grouped(), p.gpu);
    Sum& sum = sums[name_of_factor(p)];
    sum.logs += std::log(p.seconds / std::inner_product(terms.begin(), terms.end(), constants.begin(), 0.0));
    sum.rows += 1;
    sum.weight_gradient = p.shape.weight_gradient;
  }
  LogFactors out;
  std::vector<double> of_libraries;
  for (const auto& [name, sum] : sums) {
    out[name] = sum.logs / (sum.rows + kRowsToTrust);
    if (!sum.weight_gradient) of_libraries.push_back(out[name]);
  }
  if (of_libraries.empty()) return out;
  const double middle = median(of_libraries);
  for (auto& [name, log] : out) log -= middle;
  return out;
}

double largest_change(const LogFactors& before, const LogFactors& after) {
  double largest = 0;
  for (const auto& [name, log] : after) largest = std::max(largest, std::abs(log - before.at(name)));
  return largest;
}

}  // namespace

GroupedConstants fit_grouped(const std::vector<KernelPoint>& products) {
  if (products.size() < kFewestGroupedRows) return typical_grouped();
  LogFactors factors;
  for (const KernelPoint& p : products) factors[name_of_factor(p)] = 0;
  std::vector<double> constants = fit_terms(products, factors);
  for (int turn = 0; turn < kMostTurns; ++turn) {
    LogFactors next = fit_factors(products, constants);
    const bool settled = largest_change(factors, next) < kSettled;
    factors = std::move(next);
    constants = fit_terms(products, factors);
    if (settled) break;
  }
  GroupedConstants out{constants[0], constants[1], constants[2], constants[3], {}};
  if (!(out.flops > 0)) return typical_grouped();
  for (const auto& [name, log] : factors) out.factors[name] = std::exp(log);
  return out;
}

GroupedFit::GroupedFit(const std::vector<KernelPoint>& points) {
  std::ranges::copy_if(points, std::back_inserter(points_), [](const KernelPoint& p) { return p.is_grouped(); });
}

const GroupedConstants& GroupedFit::without(GroupedOut out, const KernelPoint& like) const {
  const std::string name = kept_apart_by(out, like);
  const auto [found, is_new] = fits_.try_emplace({out, name});
  if (!is_new) return found->second;
  std::vector<KernelPoint> others = points_;
  if (out != GroupedOut::nothing)
    std::erase_if(others, [&](const KernelPoint& p) { return kept_apart_by(out, p) == name; });
  return found->second = fit_grouped(others);
}

}  // namespace wt
