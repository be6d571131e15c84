#include "sim/cost/collectives/link_constants.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "configs/base/error.hpp"
#include "sim/cost/fit/least_squares.hpp"

namespace wt {
namespace {

constexpr double kNodeFloor_s = 17e-6;  // any all-reduce inside a node: 1 KiB on 8 H100 (dgxc-benchmarking: 16.9 us)
constexpr double kPythonPrior_s = 15e-6;
// Spread of the constants' logarithms over links and fabrics: latencies by a factor
// over links (InfiniBand against EFA) and by a third over fabrics of one link, rates by a tenth.
constexpr std::array<double, 3> kLinkSpread = {0.8, 0.8, 0.1}, kFabricSpread = {0.3, 0.3, 0.1};
constexpr double kBaseSpread = 1.5;     // of the base around its start: all but free
constexpr double kMachineSpread = 1.5;  // of a machine that was measured itself: the same
// Where fits begin: latency and fill of a step, share of the nominal rate.
constexpr std::array<double, 3> kOneNode = {20e-6, 5e-6, 0.8}, kManyNodes = {40e-6, 20e-6, 0.9};

double model_s(const LinkLoad& load, const LinkConstants::Constants& c, bool many) {
  const double transfer = load.transfer_s / c.share;
  return (many ? kNodeFloor_s : 0) + c.latency_s * load.steps + 2 * std::sqrt(c.fill_s * load.steps * transfer) +
         transfer;
}

double misfit(double predicted_s, double measured_s) {
  return robust(std::log(predicted_s / measured_s) / kResidualScale);
}

}  // namespace

LinkConstants::LinkConstants(const std::vector<TimedLoad>& times, const LinkConstants* near) {
  if (times.empty()) throw_error(Code::usage, "constants of collectives: found no measurement, needs at least one");
  many_ = times.front().many;
  // Parameters: logarithms of the base, of a factor each link and each fabric, and the host time.
  std::map<std::string, Eigen::Index> link_at, fabric_at;
  for (const TimedLoad& t : times) link_at.emplace(t.load.link, 0), fabric_at.emplace(t.fabric, 0);
  Eigen::Index next = 3;
  for (auto& [name, at] : link_at) at = next, next += 3;
  const Eigen::Index fabrics_at = next;
  for (auto& [name, at] : fabric_at) at = next, next += 3;
  const Eigen::Index python_at = next++;

  const auto& typical = many_ ? kManyNodes : kOneNode;
  const auto at_row = [&](const Eigen::VectorXd& p, Eigen::Index link, Eigen::Index fabric) {
    std::array<double, 3> c{};
    for (Eigen::Index i = 0; i < 3; ++i)
      c[static_cast<std::size_t>(i)] =
          typical[static_cast<std::size_t>(i)] * std::exp(std::clamp(p[i] + p[link + i] + p[fabric + i], -20.0, 20.0));
    return Constants{c[0], c[1], c[2]};
  };
  std::vector<std::pair<Eigen::Index, Eigen::Index>> places;
  for (const TimedLoad& t : times) places.emplace_back(link_at.at(t.load.link), fabric_at.at(t.fabric));
  const auto rows = static_cast<Eigen::Index>(times.size());
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    const double python_s = kPythonPrior_s * std::abs(p[python_at]);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TimedLoad& t = times[static_cast<std::size_t>(i)];
      const auto [link, fabric] = places[static_cast<std::size_t>(i)];
      out[i] = misfit(model_s(t.load, at_row(p, link, fabric), many_) + (t.python ? python_s : 0), t.seconds);
    }
    for (Eigen::Index j = 0; j < python_at; ++j) {
      const auto constant = static_cast<std::size_t>(j % 3);
      out[rows + j] = p[j] / (j < 3 ? kBaseSpread : j < fabrics_at ? kLinkSpread[constant] : kFabricSpread[constant]);
    }
    out[rows + python_at] = p[python_at] - 1;
  };
  Eigen::VectorXd start = Eigen::VectorXd::Zero(next);
  start[python_at] = 1;
  if (near != nullptr) {
    const auto begin = [&](Eigen::Index at, const Logs& logs) {
      for (std::size_t i = 0; i < 3; ++i) start[at + static_cast<Eigen::Index>(i)] = logs[i];
    };
    Logs base = near->base_;
    for (std::size_t i = 0; i < 3; ++i) base[i] -= std::log(typical[i]);
    begin(0, base);
    for (const auto& [name, at] : link_at)
      if (const auto found = near->links_.find(name); found != near->links_.end()) begin(at, found->second);
    for (const auto& [name, at] : fabric_at)
      if (const auto found = near->fabrics_.find(name); found != near->fabrics_.end()) begin(at, found->second);
    start[python_at] = near->python_s_ / kPythonPrior_s;
  }
  const Eigen::VectorXd p = least_squares(residuals, rows + next, start);

  const auto three = [&](Eigen::Index at) { return Logs{p[at], p[at + 1], p[at + 2]}; };
  base_ = three(0);
  for (std::size_t i = 0; i < 3; ++i) base_[i] += std::log(typical[i]);
  for (const auto& [name, at] : link_at) links_[name] = three(at);
  for (const auto& [name, at] : fabric_at) fabrics_[name] = three(at);
  python_s_ = kPythonPrior_s * std::abs(p[python_at]);
}

LinkConstants::Constants LinkConstants::constants(const std::string& link, const std::string& fabric) const {
  Logs logs = base_;
  const auto add = [&](const std::map<std::string, Logs>& factors, const std::string& name) {
    if (const auto found = factors.find(name); found != factors.end())
      for (std::size_t i = 0; i < 3; ++i) logs[i] += found->second[i];
  };
  add(links_, link);
  add(fabrics_, fabric);
  return {std::exp(logs[0]), std::exp(logs[1]), std::exp(logs[2])};
}

double LinkConstants::seconds(const LinkLoad& load, const Constants& constants, bool python) const {
  return model_s(load, constants, many_) + (python ? python_s_ : 0);
}

LinkConstants::Constants LinkConstants::refined(const Constants& constants, const std::vector<TimedLoad>& times) const {
  const auto rows = static_cast<Eigen::Index>(times.size());
  const auto scaled = [&](const Eigen::VectorXd& p) {
    const auto factor = [&](Eigen::Index i) { return std::exp(std::clamp(p[i], -20.0, 20.0)); };
    return Constants{constants.latency_s * factor(0), constants.fill_s * factor(1), constants.share * factor(2)};
  };
  const Residuals residuals = [&](const Eigen::VectorXd& p, Eigen::VectorXd& out) {
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TimedLoad& t = times[static_cast<std::size_t>(i)];
      out[i] = misfit(seconds(t.load, scaled(p), t.python), t.seconds);
    }
    for (Eigen::Index i = 0; i < 3; ++i) out[rows + i] = p[i] / kMachineSpread;
  };
  return scaled(least_squares(residuals, rows + 3, Eigen::VectorXd::Zero(3)));
}

}  // namespace wt
