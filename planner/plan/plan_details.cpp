#include "planner/plan/plan_details.hpp"

#include "configs/base/error.hpp"

namespace wt {

PlanDetails plan_details(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress) {
  PlanDetails out;
  out.sensitivities = sensitivities(inputs, plan, progress);
  const CadencePlan& chosen = plan.schedule.cadence;
  out.intervals.push_back({"chosen", chosen.interval_s.value, chosen.goodput.value});
  for (const double minutes : {10.0, 30.0, 60.0})
    out.intervals.push_back({fmt::format("every {:.0f} minutes", minutes), 60 * minutes,
                             goodput_at(plan.schedule.input, 60 * minutes, plan.schedule.input.mtbf_s.value)});
  return out;
}

}  // namespace wt
