// The kernel classes that price a plan's step, and the number of measurements behind each.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// Plan::priced_by, for its layout and imbalance.
std::vector<PricedClass> priced_classes(const PlanInputs& inputs, const Plan& plan);

}  // namespace wt
