// The subcommands of windtunnel data; each defined in the file of its name, data_check.cpp.
#pragma once
#include "planner/cli/parts/words.hpp"

namespace wt {

void add_data_check(const Command& data);

}  // namespace wt
