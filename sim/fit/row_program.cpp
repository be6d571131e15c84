#include "sim/fit/row_program.hpp"

#include "sim/measurements/run_layout.hpp"

namespace wt {
namespace {

LiveMemory live_memory(const StepProgram& step, Ranks ranks) {
  return live_memory(
      step.build(), [rows = step.even_rows()](int, int) { return rows; }, ranks);
}

}  // namespace

StepProgram peak_program(const RunRow& row, const StackSpec& stack) {
  return step_program(run_spec_of(row), stack).to_peak();
}

Ranks printed_ranks(const MemoryFacts& facts) { return facts.first_rank_only ? Ranks::first_stage : Ranks::all; }

LiveMemory live_memory(const StepProgram& step, const MemoryFacts& facts) {
  return live_memory(step, printed_ranks(facts));
}

LiveMemory layer_memory(const StepProgram& step) {
  // A model with twice the layers has the same embedding, output projection and working sets: the difference is the
  // layers.
  StepProgram twice = step;
  twice.model.layers *= 2;
  for (std::int64_t& layers : twice.layout.chunk_layers) layers *= 2;
  const LiveMemory one = live_memory(step, Ranks::first_stage), two = live_memory(twice, Ranks::first_stage);
  return {two.kept - one.kept, two.dynamic - one.dynamic};
}

}  // namespace wt
