// What would change a plan's answer: one input at a time at the ends of its range.
#pragma once
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"

namespace wt {

/// One input at an end of its range.
struct SensitivityEnd {
  double value = 0;       ///< of the plan's layout, by the closed form, cadence chosen anew
  double regret = 0;      ///< that over the best layout's there, minus 1
  std::string best;       ///< that layout, "" where the plan's is within the tie
  bool searched = false;  ///< it is the best of the space; else of kComparedLayouts of the plan's search
};
struct SensitivityRow {
  std::string input;
  SensitivityEnd low, high;
};
struct Sensitivities {
  std::string unit;  ///< of what is preferred: "days", "kWh"
  double value = 0;  ///< of the plan
  std::vector<SensitivityRow> rows;

  static constexpr std::int64_t kSearchedSpace = 5000;  ///< layouts of a space that is searched again
  static constexpr std::size_t kComparedLayouts = 8;    ///< the best of a larger one
};

/// Searches a small space again at each end, simulates a few layouts of a large one: seconds.
Sensitivities sensitivities(const PlanInputs& inputs, const Plan& plan, const SearchProgress& progress = {});

}  // namespace wt
