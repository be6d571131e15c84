// Figures of a report that are not in the plan. They are computed here, once, because reports compute nothing.
#pragma once
#include <string>
#include <vector>

#include "planner/plan/sensitivities.hpp"

namespace wt {

/// Closed-form goodput for one interval between saves.
struct IntervalRow {
  std::string name;  ///< "chosen", "every 10 minutes"
  double interval_s = 0, goodput = 0;
};

struct PlanDetails {
  Sensitivities sensitivities;
  std::vector<IntervalRow> intervals;  ///< the chosen one first
};

/// Searches again at each end of each input, which takes seconds.
PlanDetails plan_details(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress = {});

}  // namespace wt
