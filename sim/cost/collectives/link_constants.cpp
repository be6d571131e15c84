#include "sim/cost/collectives/link_constants.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "sim/statistics/least_squares.hpp"

namespace wt {
namespace {

constexpr double kMachineSpread = 1.5;  // prior's width for the factors of a measured machine: almost free

}  // namespace

double link_seconds(const LinkLoad& load, const LinkConstants::Constants& c) {
  const double transfer = load.crowding * load.transfer_s / c.share;
  return load.start_s + c.latency_s * load.steps + 2 * std::sqrt(c.fill_s * load.steps * transfer) + transfer;
}

double link_misfit(double predicted_s, double measured_s) {
  return robust(std::log(predicted_s / measured_s) / kResidualScale);
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
  return link_seconds(load, constants) + (python ? python_s_ : 0);
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
      out[i] = link_misfit(seconds(t.load, scaled(p), t.python), t.seconds);
    }
    for (Eigen::Index i = 0; i < 3; ++i) out[rows + i] = p[i] / kMachineSpread;
  };
  return scaled(least_squares(residuals, rows + 3, Eigen::VectorXd::Zero(3)));
}

}  // namespace wt
