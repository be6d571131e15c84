// The program of a training step as a stack arranges it. Only this code turns a run into what is simulated and what its
// memory is counted from.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/run.hpp"
#include "configs/files/stack.hpp"
#include "sim/program/compose/compose.hpp"

namespace wt {

struct StepProgram {
  ModelSpec model;
  Layout layout;           ///< with the stack's distribution of layers over stages
  ProgramOptions options;  ///< of the whole step, with the stack's memory use

  ProgramSet build() const { return build_program_set(model, layout, options); }
  /// The program of the microbatches up to the memory peak. Leaves out a smaller last microbatch, which needs less.
  StepProgram to_peak() const;
  /// Rows that a rank's experts receive in a full microbatch if all experts receive equally many.
  double even_rows() const;
};

/// Applies what a stack changes: memory, and layers per stage if the layout does not give them. `shared_cores`:
/// collectives of the ranks use Gloo. Throws Error{usage} if the layout uses a feature that the stack lacks.
StepProgram step_program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                         const StackSpec& stack, bool shared_cores);
/// The program of a run on GPUs, or on hosts whose ranks share cores.
StepProgram step_program(const RunSpec& run, const StackSpec& stack, bool shared_cores = false);

/// Sets how the stack's programs use memory, and whether its attention keeps scores.
void take_memory(const StackSpec& stack, ProgramOptions& options);
/// Layers of each chunk of a pipeline. If the chunks do not divide the layers, the first chunks get one more;
/// `balanced`: by cost, including the output projection (StackSpec::balanced_stages). Empty = equally many.
std::vector<std::int64_t> chunk_layers(const ModelSpec& model, const Layout& layout, bool balanced);
/// The layout with the stack's chunk layers, if the layout does not give them itself. Throws Error{usage} if the layout
/// uses a feature that the stack lacks.
Layout with_stack_layers(const StackSpec& stack, const ModelSpec& model, Layout layout);

}  // namespace wt
