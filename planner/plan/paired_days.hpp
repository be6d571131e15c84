// The difference of two plans, run by run. In each run both have the same failures and the same error of the predicted
// step, as far as the runs go by the same clock. The ratio of two steps has an error of its own.
#pragma once
#include <cstdint>
#include <vector>

#include "planner/plan/plan.hpp"

namespace wt {

/// Standard deviation of log(predicted / true ratio) of two steps: the root mean square over 24 pairs of GPUs with
/// published runs of one model and stack, 10 models (bench/studies/offers/ratio_error.py). Two runs of one model on the
/// same GPU are off by no less: 0.14 in the median over 42 models.
inline constexpr double kRatioError = 0.12;

/// By run: the factor by which the error of the steps' ratio multiplies the first one. 1 for equally many of the same
/// GPU with the same predicted step. As many as both plans have runs.
std::vector<double> ratio_factors(const PlanInputs& of, const Plan& plan, const PlanInputs& than_of, const Plan& than,
                                  std::uint64_t seed);

struct PairedDays {
  double p50 = 0, p05 = 0, p95 = 0;  ///< of the plan's days minus the other's
  double shorter = 0;                ///< share of the runs in which the plan takes fewer days
};
PairedDays paired_days(const PlanInputs& of, const Plan& plan, const PlanInputs& than_of, const Plan& than);

}  // namespace wt
