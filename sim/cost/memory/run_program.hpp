// The step program of a run file, as a stack arranges it: what its memory is asked of.
#pragma once
#include "configs/files/run.hpp"
#include "configs/files/stack.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

struct RunProgram {
  ModelSpec model;
  Layout layout;
  ProgramOptions options;
  double rows = 0;  ///< of experts on each rank and microbatch, balanced
};

/// Microbatches: as many as it takes to reach the peak. Throws Error{usage} where the stack has not what the run asks.
RunProgram run_program(const RunSpec& run, const StackSpec& stack);

/// How a stack's programs use memory, and whether its attention keeps scores.
void take_memory(const StackSpec& stack, ProgramOptions& options);
/// What a stack changes of a run's program: memory, and how layers are dealt to stages where the run does not say.
/// Throws Error{usage} where the layout has what the stack has not.
void take_stack(const StackSpec& stack, const ModelSpec& model, Layout& layout, ProgramOptions& options);

/// Layers of each chunk of a pipeline: the first ones one more where the chunks do not divide the layers; or by cost,
/// with the output projection in it (StackSpec::balanced_stages). Empty = equally many.
std::vector<std::int64_t> deal_layers(const ModelSpec& model, const Layout& layout, bool balanced);

}  // namespace wt
