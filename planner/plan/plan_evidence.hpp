// Which kernel classes a plan's step is priced by, and on how many measurements each of them rests.
#pragma once
#include "planner/plan/plan.hpp"

namespace wt {

/// Plan::priced_by, of its layout and imbalance.
std::vector<PricedClass> priced_classes(const PlanInputs& inputs, const Plan& plan);

}  // namespace wt
