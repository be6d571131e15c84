// Figures of a report that are not in the plan. They are computed here, because reports compute nothing.
#pragma once
#include <string>
#include <vector>

#include "planner/plan/explored.hpp"
#include "planner/plan/plan.hpp"

namespace wt {

// The sensitivity of a plan to one input at a time, at the ends of the input's range.

/// The effect of one input at an end of its range.
struct SensitivityEnd {
  double value = 0;       ///< of the objective: the plan's layout, in closed form with a new cadence
  double regret = 0;      ///< `value` over that of the best layout at this end, minus 1
  std::string best;       ///< the best layout; "" if the plan's layout ties with it
  bool searched = false;  ///< `best` is of the whole space; else of kComparedLayouts layouts
};
struct SensitivityRow {
  std::string input;
  SensitivityEnd low, high;
};
struct Sensitivities {
  std::string unit;  ///< of the objective: "days", "kWh"
  double value = 0;  ///< of the plan
  std::vector<SensitivityRow> rows;

  static constexpr std::int64_t kSearchedSpace = 5000;  ///< largest space that is searched again
  static constexpr std::size_t kComparedLayouts = 8;    ///< so many of the best layouts represent a larger space
};

/// Searches a small space again at each end, or simulates a few layouts of a large one. Takes seconds.
Sensitivities sensitivities(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress = {});

/// Closed-form goodput for one interval between saves.
struct IntervalRow {
  std::string name;  ///< "chosen", "every 10 minutes"
  double interval_s = 0, goodput = 0;
};

struct PlanDetails {
  Sensitivities sensitivities;
  std::vector<IntervalRow> intervals;  ///< the chosen one first
  std::vector<ExploredRow> explored;   ///< options that were planned beside this one; empty: none
  std::optional<double> within_s;      ///< the asked deadline
};

/// Searches again at each end of each input, which takes seconds.
PlanDetails plan_details(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress = {});

}  // namespace wt
