// The program of a training step as a stack arranges it: the one place where a run becomes what is simulated, and what
// its memory is counted of.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/stack.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

struct StepProgram {
  ModelSpec model;
  Layout layout;           ///< with the layers of its stages as the stack distributes them
  ProgramOptions options;  ///< of the whole step, with the memory use of the stack

  ProgramSet build() const { return build_program_set(model, layout, options); }
  /// Of the microbatches until memory is highest. A smaller last microbatch, which needs less, is left out.
  StepProgram to_peak() const;
  /// Rows that a rank's experts receive in a full microbatch where all receive equally many.
  double even_rows() const;
};

/// What a stack changes: memory, and the layers of stages where the layout does not say them. `shared_cores`: the
/// ranks' collectives are Gloo's. Throws Error{usage} where the layout has what the stack has not.
StepProgram step_program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                         const StackSpec& stack, bool shared_cores);
/// On GPUs, or on hosts whose ranks share cores.
StepProgram step_program(const RunSpec& run, const StackSpec& stack, bool shared_cores = false);

/// How a stack's programs use memory, and whether its attention keeps scores.
void take_memory(const StackSpec& stack, ProgramOptions& options);
/// Layers of each chunk of a pipeline: the first ones one more where the chunks do not divide the layers; or by cost,
/// with the output projection in it (StackSpec::balanced_stages). Empty = equally many.
std::vector<std::int64_t> chunk_layers(const ModelSpec& model, const Layout& layout, bool balanced);
/// The layout with these, as the stack has them, where it does not say them itself. Throws Error{usage} where the
/// layout has what the stack has not.
Layout with_stack_layers(const StackSpec& stack, const ModelSpec& model, Layout layout);

}  // namespace wt
