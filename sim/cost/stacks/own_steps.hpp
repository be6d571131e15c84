// What measured steps of a user's own job say about the other steps of this job: a posterior over the factors of its
// stack on its machine.
//
// The logarithm of measured over predicted step is a sum over the stack's factors (kStackFactors), each times the
// step's sensitivity to it, plus a factor that all steps of a job have in common, plus an error of each step. All are
// normal around 0 before something is measured. So a step that is mostly products says much about products and little
// about the network.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/cost/stacks/step_constants.hpp"
#include "sim/statistics/normal_posterior.hpp"

namespace wt {

/// d log(step) / d log(factor), by index of kStackFactors: the share of the step that the factor stretches.
using StepSensitivity = std::array<double, kStackFactors.size()>;

/// Standard deviations of a step's own error, in its logarithm: of one that was measured, which another measurement of
/// it repeats, and of others of the job. Steps of MoE models differ more in what no factor stretches.
inline constexpr double kMeasuredSpread = 0.05, kDenseSpread = 0.1, kMoeSpread = 0.2;
double own_spread(const ModelSpec& model);

/// Change of a factor's logarithm by which a sensitivity is found.
inline constexpr double kSensitivityLog = 0.1;

struct OwnStep {
  StepSensitivity sensitivity{};
  double log_ratio = 0;  ///< of measured over predicted
};

class OwnSteps {
 public:
  /// Nothing measured: the priors.
  explicit OwnSteps(const std::vector<OwnStep>& measured = {});

  /// Far from 1, a step is no product of powers of its factors. Scales their logarithms so that `simulated`, for each
  /// measured step log(step with factors / step without), is along what the posterior says of them.
  void settle(const std::function<std::vector<double>(const std::map<std::string, double>& factors)>& simulated);

  /// By name of kStackFactors: what each is to be multiplied by, including the factor in common.
  std::map<std::string, double> factors() const { return factors(scale_); }
  /// The mean of log(measured / predicted) of another step of the job.
  double log_shift(const StepSensitivity& sensitivity) const;
  /// Its standard deviation, with the step's own error (own_spread).
  double log_spread(const StepSensitivity& sensitivity, double own) const;

 private:
  std::map<std::string, double> factors(double scale) const;

  NormalPosterior logs_;        ///< of the factors, and of the one in common
  std::vector<double> shifts_;  ///< log_shift of the measured steps
  double scale_ = 1;
};

/// The stack with its constants of the step multiplied by these factors, by name of kStackFactors.
StackSpec with_factors(StackSpec stack, const StepModel& steps, const std::map<std::string, double>& factors);

}  // namespace wt
