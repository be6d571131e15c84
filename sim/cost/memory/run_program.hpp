// The step program of a run file, as a stack arranges it: what its memory is asked of. A published run is one, too.
#pragma once
#include "configs/files/run.hpp"
#include "configs/files/stack.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

struct RunProgram {
  ModelSpec model;
  Layout layout;
  ProgramOptions options;
  double rows = 0;  ///< of experts on each rank and microbatch, balanced
};

/// Microbatches: as many as it takes to reach the peak. Throws Error{usage} where the stack has not what the run asks.
RunProgram run_program(const RunSpec& run, const StackSpec& stack);
/// Throws Error{usage} where no layout of ours is the row's, too.
RunProgram run_program(const RunRow& row, const StackSpec& stack);

/// How a stack's programs use memory, and whether its attention keeps scores.
void take_memory(const StackSpec& stack, ProgramOptions& options);
/// What a stack changes of a run's program: memory, and how layers are dealt to stages where the run does not say.
/// Throws Error{usage} where the layout has what the stack has not.
void take_stack(const StackSpec& stack, const ModelSpec& model, Layout& layout, ProgramOptions& options);

/// Layers of each chunk of a pipeline: the first ones one more where the chunks do not divide the layers; or by cost,
/// with the output projection in it (StackSpec::balanced_stages). Empty = equally many.
std::vector<std::int64_t> deal_layers(const ModelSpec& model, const Layout& layout, bool balanced);

/// The ranks whose memory the run's source prints.
Ranks printed_ranks(const MemoryFacts& facts);
/// Of these, with balanced rows.
LiveMemory live_memory(const RunProgram& run, const MemoryFacts& facts);

/// Of the layers alone on the first stage, as papers count: states as `kept`, activations as `dynamic`.
LiveMemory layer_memory(const RunProgram& run);

}  // namespace wt
