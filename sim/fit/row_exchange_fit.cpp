#include "sim/fit/row_exchange_fit.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "sim/statistics/least_squares.hpp"

namespace wt {
namespace {

// Start of the fit: all libraries together take 137 us and 28.5 GB/s, half of a 400 Gb/s adapter.
constexpr std::array<double, 2> kUsual = {137e-6, 1 / 28.5e9};
// Spread of the logarithms of the base, and of the factors: starts and rates of libraries and of sites differ by a
// half.
constexpr double kBaseSpread = 1.5, kFactorSpread = 0.5;

std::string library_of(const RowExchangeRow& row) { return row.library + (row.low_latency ? ", low latency" : ""); }
std::string site_of(const RowExchangeRow& row) { return row.gpu + ", " + row.transport; }

double seconds_of(const RowExchangeRow& row, double log_start, double log_s_per_byte) {
  return kUsual[0] * std::exp(log_start) + row.nic_bytes() * kUsual[1] * std::exp(log_s_per_byte);
}

}  // namespace

RowExchangeFit::RowExchangeFit(const std::vector<RowExchangeRow>& rows) {
  struct Timed {
    const RowExchangeRow& row;
    Eigen::Index library, site;
    double weight;
  };
  std::map<std::string, Eigen::Index> libraries, sites;
  std::map<std::string, double> of_setup;
  std::vector<const RowExchangeRow*> usable;
  for (const RowExchangeRow& row : rows)
    if (row.unusable.empty() && row.seconds > 0) usable.push_back(&row);
  if (usable.empty()) throw_usage("times of dispatches: found no measurement, needs at least one");
  for (const RowExchangeRow* row : usable)
    libraries[library_of(*row)] = sites[site_of(*row)] = 0, ++of_setup[row->setup()];
  Eigen::Index next = 2;
  for (auto* factors : {&libraries, &sites})
    for (auto& [name, at] : *factors) at = next, next += 2;
  std::vector<Timed> timed;
  for (const RowExchangeRow* row : usable)
    timed.push_back(
        {*row, libraries.at(library_of(*row)), sites.at(site_of(*row)), 1 / std::sqrt(of_setup.at(row->setup()))});
  const auto count = static_cast<Eigen::Index>(timed.size());
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const auto log_at = [&](const Timed& t, Eigen::Index i) {
      return std::clamp(p[i] + p[t.library + i] + p[t.site + i], -20.0, 20.0);
    };
    for (Eigen::Index i = 0; i < count; ++i) {
      const Timed& t = timed[static_cast<std::size_t>(i)];
      const double predicted_s = seconds_of(t.row, log_at(t, 0), log_at(t, 1));
      out[i] = t.weight * robust(std::log(predicted_s / t.row.seconds) / kResidualScale);
    }
    for (Eigen::Index j = 0; j < next; ++j) out[count + j] = p[j] / (j < 2 ? kBaseSpread : kFactorSpread);
  };
  const Eigen::VectorXd p = least_squares(residuals, count + next, Eigen::VectorXd::Zero(next));
  base_ = {p[0], p[1]};
  for (const auto& [name, at] : libraries) libraries_[name] = {p[at], p[at + 1]};
  for (const auto& [name, at] : sites) sites_[name] = {p[at], p[at + 1]};
}

double RowExchangeFit::seconds(const RowExchangeRow& row) const {
  const Logs library = value_or(libraries_, library_of(row), Logs{}), site = value_or(sites_, site_of(row), Logs{});
  return seconds_of(row, base_[0] + library[0] + site[0], base_[1] + library[1] + site[1]);
}

bool RowExchangeFit::knows_library(const RowExchangeRow& row) const { return libraries_.contains(library_of(row)); }

}  // namespace wt
