// The highest memory of a step over its ranks, each with the rows that the routing sends to it: the figure of a
// replay's timelines, without simulating times.
#pragma once
#include "sim/program/memory/live_memory.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/question/step_program.hpp"

namespace wt {

/// Over the ranks of the first expert group; other groups have the same routing. `step` has the microbatches until the
/// peak (StepProgram::to_peak).
LiveMemory routed_memory(const StepProgram& step, const RoutingSource& routing, Ranks ranks);

/// The rows that one rank receives in the first step, for replays of its memory. `program` is of its class; the routing
/// must outlive the result.
RowsBound rows_of_rank(const Program& program, const Layout& layout, const RoutingSource& routing, std::int64_t rank);

}  // namespace wt
