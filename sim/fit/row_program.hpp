// The step program of a published run, and the part of its memory that its source prints.
#pragma once
#include "sim/measurements/run_rows.hpp"
#include "sim/program/memory/live_memory.hpp"
#include "sim/question/step_program.hpp"

namespace wt {

/// The stack with what the row says otherwise, and with the optimizer's whole state on every rank if the row says that
/// none is shared. Transformer Engine's workspaces are smaller before Hopper.
StackSpec row_stack(const RunRow& row, StackSpec stack);

/// Program of the row's run file (run_spec_of), up to the microbatch with the memory peak. Throws Error{usage} if none
/// of our layouts matches the row.
StepProgram peak_program(const RunRow& row, const StackSpec& stack);

/// Live memory of the printed ranks, with balanced rows.
LiveMemory live_memory(const StepProgram& step, const MemoryFacts& facts);

/// Memory of the layers alone on the first stage, as papers count it: states as `kept`, activations as `dynamic`.
LiveMemory layer_memory(const StepProgram& step);

}  // namespace wt
