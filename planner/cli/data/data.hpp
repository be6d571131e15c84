// The subcommands of windtunnel data, in files named after them (data_check_command.cpp, data_mix.cpp).
#pragma once
#include "planner/cli/parts/words.hpp"

namespace wt {

void add_data_check(const Command& data);
void add_data_mix(const Command& data);

}  // namespace wt
