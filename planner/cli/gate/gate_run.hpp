// windtunnel gate run: the subcommand of gate that takes the measurements itself.
#pragma once
#include "planner/cli/parts/words.hpp"

namespace wt {

void add_gate_run(const Command& gate);

}  // namespace wt
