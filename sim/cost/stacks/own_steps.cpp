#include "sim/cost/stacks/own_steps.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "configs/files/model.hpp"

namespace wt {
namespace {

constexpr Eigen::Index kFactors = kStackFactors.size();

/// Standard deviations of logarithms, in the order of kStackFactors: how far a job's factors are from its stack's.
/// Rounded from those with the least error of `validate runs --anchors 1`, so these rows are no blind test of them.
constexpr std::array<double, kStackFactors.size()> kSpreads = {0.06, 0.15, 0.5, 0.6, 0.4, 0.8, 0.3, 0.4, 0.7};
constexpr double kCommonSpread = 0.08;  ///< of the factor in common
/// Of a factor's logarithm, before it is scaled: what one step says of a small part of it is little.
constexpr double kMostLog = 0.5;
constexpr double kMostScale = 1.6;

Eigen::VectorXd with_common(const StepSensitivity& sensitivity) {
  Eigen::VectorXd out(kFactors + 1);
  for (Eigen::Index i = 0; i < kFactors; ++i) out[i] = sensitivity[static_cast<std::size_t>(i)];
  out[kFactors] = 1;
  return out;
}

}  // namespace

double own_spread(const ModelSpec& model) { return model.experts > 0 ? kMoeSpread : kDenseSpread; }

OwnSteps::OwnSteps(const std::vector<OwnStep>& measured) {
  Eigen::VectorXd spreads(kFactors + 1);
  for (Eigen::Index i = 0; i < kFactors; ++i) spreads[i] = kSpreads[static_cast<std::size_t>(i)];
  spreads[kFactors] = kCommonSpread;
  const auto rows = static_cast<Eigen::Index>(measured.size());
  Eigen::MatrixXd seen(rows, kFactors + 1);
  Eigen::VectorXd ratios(rows);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const OwnStep& step = measured[static_cast<std::size_t>(i)];
    seen.row(i) = with_common(step.sensitivity);
    ratios[i] = step.log_ratio;
  }
  logs_ = normal_posterior(spreads, seen, ratios, kMeasuredSpread);
  for (const OwnStep& step : measured) shifts_.push_back(log_shift(step.sensitivity));
}

void OwnSteps::settle(const std::function<std::vector<double>(const std::map<std::string, double>&)>& simulated) {
  constexpr double kNothing = 1e-12, kNear = 0.01;
  const double all = std::inner_product(shifts_.begin(), shifts_.end(), shifts_.begin(), 0.0);
  if (all < kNothing) return;
  double low = 0, high = kMostScale;  // what is reached grows with the scale
  for (int step = 0; step < 6; ++step) {
    scale_ = step == 0 ? 1 : (low + high) / 2;
    const std::vector<double> reached = simulated(factors());
    const double share = std::inner_product(shifts_.begin(), shifts_.end(), reached.begin(), 0.0) / all;
    if (std::abs(share - 1) < kNear) return;
    (share > 1 ? high : low) = scale_;
  }
}

std::map<std::string, double> OwnSteps::factors(double scale) const {
  std::map<std::string, double> out;
  for (Eigen::Index i = 0; i < kFactors; ++i)
    out[kStackFactors[static_cast<std::size_t>(i)]] =
        std::exp(scale * std::clamp(logs_.mean[i] + logs_.mean[kFactors], -kMostLog, kMostLog));
  return out;
}

double OwnSteps::log_shift(const StepSensitivity& sensitivity) const {
  return with_common(sensitivity).dot(logs_.mean);
}

double OwnSteps::log_spread(const StepSensitivity& sensitivity, double own) const {
  const Eigen::VectorXd by = with_common(sensitivity);
  return std::sqrt(by.dot(logs_.covariance * by) + own * own);
}

StackSpec with_factors(StackSpec stack, const StepModel& steps, const std::map<std::string, double>& factors) {
  const std::map<std::string, double> fitted = steps.factors(stack.name);
  for (const auto& [name, factor] : factors) stack.step.try_emplace(name, fitted.at(name)).first->second *= factor;
  return stack;
}

}  // namespace wt
