// windtunnel validate plans.
#pragma once
#include "planner/cli/parts/words.hpp"

namespace wt {

void add_validate_plans(const Command& validate);

}  // namespace wt
