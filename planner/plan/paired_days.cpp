#include "planner/plan/paired_days.hpp"

#include <algorithm>
#include <cmath>

#include "configs/base/hash.hpp"
#include "configs/base/number.hpp"
#include "configs/base/statistics.hpp"
#include "planner/money/draws.hpp"

namespace wt {

std::vector<double> ratio_factors(const PlanInputs& of, const Plan& plan, const PlanInputs& than_of, const Plan& than,
                                  std::uint64_t seed) {
  const StudySpec &a = of.study, &b = than_of.study;
  const std::size_t runs = std::min(plan.cost.draws.size(), than.cost.draws.size());
  constexpr double kSame = 1e-3;
  if (a.gpus == b.gpus && a.cluster.gpu_name == b.cluster.gpu_name &&
      std::abs(plan.step.step_s - than.step.step_s) <= kSame * than.step.step_s)
    return std::vector<double>(runs, 1.0);  // they share the model's error
  std::vector<double> out = stratified_normals(static_cast<std::int64_t>(runs), seed);
  for (double& each : out) each = std::exp(kRatioError * each);
  return out;
}

PairedDays paired_days(const PlanInputs& of, const Plan& plan, const PlanInputs& than_of, const Plan& than) {
  constexpr double kHours_a_day = 24;
  const std::vector<double> factors =
      ratio_factors(of, plan, than_of, than, hash_of(of.study.name + of.study.text) ^ of.study.seed);
  std::vector<double> differences;
  for (std::size_t i = 0; i < factors.size(); ++i)
    differences.push_back((plan.cost.draws[i].gpu_hours / as_double(of.study.gpus) * factors[i] -
                           than.cost.draws[i].gpu_hours / as_double(than_of.study.gpus)) /
                          kHours_a_day);
  const auto shorter = std::ranges::count_if(differences, [](double days) { return days < 0; });
  return {quantile(differences, 0.5), quantile(differences, 0.05), quantile(differences, 0.95),
          as_double(shorter) / as_double(std::ssize(differences))};
}

}  // namespace wt
