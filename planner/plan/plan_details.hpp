// What a report says of a plan beyond the plan: computed here, once, so that whoever shows it only writes it down.
#pragma once
#include <string>
#include <vector>

#include "planner/plan/sensitivities.hpp"

namespace wt {

/// Goodput by the closed form at one interval between saves.
struct IntervalRow {
  std::string name;  ///< "chosen", "every 10 minutes"
  double interval_s = 0, goodput = 0;
};

struct PlanDetails {
  Sensitivities sensitivities;
  std::vector<IntervalRow> intervals;  ///< the chosen one first
};

/// Searches again at each end of each input: seconds.
PlanDetails plan_details(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress = {});

}  // namespace wt
