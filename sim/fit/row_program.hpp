// The step program of a published run, and the memory of it that its source prints.
#pragma once
#include "sim/measurements/run_rows.hpp"
#include "sim/program/memory/live_memory.hpp"
#include "sim/question/step_program.hpp"

namespace wt {

/// Of the row's run file (run_spec_of), its microbatches until the peak. Throws Error{usage} where no layout of ours is
/// the row's.
StepProgram peak_program(const RunRow& row, const StackSpec& stack);

/// The ranks whose memory the run's source prints.
Ranks printed_ranks(const MemoryFacts& facts);
/// Of these ranks, with balanced rows.
LiveMemory live_memory(const StepProgram& step, const MemoryFacts& facts);

/// Of the layers alone on the first stage, as papers count: states as `kept`, activations as `dynamic`.
LiveMemory layer_memory(const StepProgram& step);

}  // namespace wt
