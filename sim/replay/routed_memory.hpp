// The highest memory of a step over its ranks, each with the rows that the routing sends to it: what the timelines of a
// replay say, without its clock.
#pragma once
#include "sim/program/memory/live_memory.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/question/step_program.hpp"

namespace wt {

/// Of the first expert group; other groups are routed alike. `step`: its microbatches until the peak
/// (StepProgram::to_peak).
LiveMemory routed_memory(const StepProgram& step, const RoutingSource& routing, Ranks ranks);

}  // namespace wt
