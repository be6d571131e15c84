// The highest memory of a step over its ranks, each with the rows that the routing sends to it: what the timelines of a
// replay say, without its clock.
#pragma once
#include "sim/cost/memory/run_program.hpp"
#include "sim/program/memory/live_memory.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

/// Of the step's first microbatches (RunProgram) and expert group; other groups are routed alike.
LiveMemory routed_memory(const RunProgram& run, const RoutingSource& routing, Ranks ranks);

}  // namespace wt
