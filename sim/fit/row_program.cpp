#include "sim/fit/row_program.hpp"

#include <algorithm>

#include "configs/files/data_sheet.hpp"
#include "sim/measurements/run_layout.hpp"

namespace wt {
namespace {

LiveMemory live_memory(const StepProgram& step, Ranks ranks) {
  return live_memory(
      step.build(), [rows = step.even_rows()](int, int) { return rows; }, ranks);
}

}  // namespace

StackSpec row_stack(const RunRow& row, StackSpec stack) {
  constexpr double kBeforeHopper_bytes = 4 << 20;
  const RowStack& said = row.stack;
  MemoryFacts& m = stack.memory;
  stack.attention = said.attention.value_or(stack.attention);
  m.weight_gradients = said.weight_gradients.value_or(m.weight_gradients);
  m.dropout = said.dropout.value_or(m.dropout);
  m.grouped_products = said.grouped_products.value_or(m.grouped_products);
  m.logit_bytes = said.logit_bytes.value_or(m.logit_bytes);
  m.whole_states = m.whole_states || row.zero_stage == 0;
  if (const auto gpu = data_sheet(row.gpu); gpu && gpu->generation < 9)
    m.product_workspace_bytes = std::min(m.product_workspace_bytes, kBeforeHopper_bytes);
  return stack;
}

StepProgram peak_program(const RunRow& row, const StackSpec& stack) {
  return step_program(run_spec_of(row), row_stack(row, stack)).to_peak();
}

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
