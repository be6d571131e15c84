#include "sim/fit/link_fit.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "configs/base/error.hpp"
#include "sim/statistics/least_squares.hpp"

namespace wt {
namespace {

constexpr double kPythonPrior_s = 15e-6;
// Spread of the constants' logarithms: latencies differ by a factor over links (InfiniBand against EFA) and by a third
// over fabrics of one link, rates by a third over links (Slingshot against InfiniBand) and by a tenth over fabrics.
constexpr std::array<double, 3> kLinkSpread = {0.8, 0.8, 0.3}, kFabricSpread = {0.3, 0.3, 0.1};
constexpr double kBaseSpread = 1.5;  // of the base around its start: almost free
// Of the share in an all-to-all over nodes. Links differ so much in it that the few that were measured do not tell the
// share of an unknown one: it stays near the start, between InfiniBand's 0.74 and EFA's 0.9.
constexpr double kExchangeBaseSpread = 0.05, kExchangeLinkSpread = 0.1;
// Start of a fit: latency and fill of a step, share of the nominal rate.
constexpr std::array<double, 3> kOneNode = {20e-6, 5e-6, 0.8}, kManyNodes = {40e-6, 20e-6, 0.9},
                                kExchange = {2e-6, 1e-6, 0.8};

}  // namespace

LinkConstants fit_links(const std::vector<TimedLoad>& times, const LinkConstants* near) {
  if (times.empty()) throw_usage("constants of collectives: found no measurement, needs at least one");
  const bool many = times.front().many, exchange = many && times.front().form == CollectiveForm::exchange;
  // Parameters: logarithms of the base and of a factor for each link and each fabric, and the host time.
  std::map<std::string, Eigen::Index> link_at, fabric_at;
  for (const TimedLoad& t : times) link_at.emplace(t.load.link, 0), fabric_at.emplace(t.fabric, 0);
  Eigen::Index next = 3;
  for (auto& [name, at] : link_at) at = next, next += 3;
  const Eigen::Index fabrics_at = next;
  for (auto& [name, at] : fabric_at) at = next, next += 3;
  const Eigen::Index python_at = next++;

  const auto& typical = exchange ? kExchange : many ? kManyNodes : kOneNode;
  const auto at_row = [&](const Eigen::VectorXd& p, Eigen::Index link, Eigen::Index fabric) {
    std::array<double, 3> c{};
    for (Eigen::Index i = 0; i < 3; ++i)
      c[static_cast<std::size_t>(i)] =
          typical[static_cast<std::size_t>(i)] * std::exp(std::clamp(p[i] + p[link + i] + p[fabric + i], -20.0, 20.0));
    return LinkConstants::Constants{c[0], c[1], c[2]};
  };
  std::vector<std::pair<Eigen::Index, Eigen::Index>> places;
  for (const TimedLoad& t : times) places.emplace_back(link_at.at(t.load.link), fabric_at.at(t.fabric));
  const auto rows = static_cast<Eigen::Index>(times.size());
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const double python_s = kPythonPrior_s * std::abs(p[python_at]);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TimedLoad& t = times[static_cast<std::size_t>(i)];
      const auto [link, fabric] = places[static_cast<std::size_t>(i)];
      out[i] = link_misfit(link_seconds(t.load, at_row(p, link, fabric)) + (t.python ? python_s : 0), t.seconds);
    }
    for (Eigen::Index j = 0; j < python_at; ++j) {
      const auto constant = static_cast<std::size_t>(j % 3);
      const bool exchanged = exchange && constant == 2;
      out[rows + j] = p[j] / (j < 3            ? (exchanged ? kExchangeBaseSpread : kBaseSpread)
                              : j < fabrics_at ? (exchanged ? kExchangeLinkSpread : kLinkSpread[constant])
                                               : kFabricSpread[constant]);
    }
    out[rows + python_at] = p[python_at] - 1;
  };
  Eigen::VectorXd start = Eigen::VectorXd::Zero(next);
  start[python_at] = 1;
  if (near != nullptr) {
    const auto begin = [&](Eigen::Index at, const LinkConstants::Logs& logs) {
      for (std::size_t i = 0; i < 3; ++i) start[at + static_cast<Eigen::Index>(i)] = logs[i];
    };
    LinkConstants::Logs base = near->base();
    for (std::size_t i = 0; i < 3; ++i) base[i] -= std::log(typical[i]);
    begin(0, base);
    for (const auto& [name, at] : link_at)
      if (const auto found = near->links().find(name); found != near->links().end()) begin(at, found->second);
    for (const auto& [name, at] : fabric_at)
      if (const auto found = near->fabrics().find(name); found != near->fabrics().end()) begin(at, found->second);
    start[python_at] = near->python_s() / kPythonPrior_s;
  }
  const Eigen::VectorXd p = least_squares(residuals, rows + next, start);

  const auto three = [&](Eigen::Index at) { return LinkConstants::Logs{p[at], p[at + 1], p[at + 2]}; };
  LinkConstants::Logs base = three(0);
  for (std::size_t i = 0; i < 3; ++i) base[i] += std::log(typical[i]);
  std::map<std::string, LinkConstants::Logs> links, fabrics;
  for (const auto& [name, at] : link_at) links[name] = three(at);
  for (const auto& [name, at] : fabric_at) fabrics[name] = three(at);
  return {many, base, std::move(links), std::move(fabrics), kPythonPrior_s * std::abs(p[python_at])};
}

}  // namespace wt
