#include "sim/question/step_program.hpp"

#include <algorithm>

#include "configs/base/number.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {
namespace {

/// nanotron's rule: the cost of a block is its weights without norms. A new stage begins after the block at which the
/// cost reaches the stages' share so far. Here every stage has a layer; nanotron may leave the last one only the head.
std::vector<std::int64_t> layers_by_cost(const ModelSpec& m, std::int64_t stages) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(stages), 0);
  const double layer = as_double(m.attention_parameters() + m.d_model * (m.ffn_rows(m.ffn) + m.ffn));
  const double share = (layer * as_double(m.layers) + as_double(m.vocab * m.d_model)) / as_double(stages);
  std::int64_t stage = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    ++out[static_cast<std::size_t>(stage)];
    const bool full = layer * as_double(i + 1) > share * as_double(stage + 1), needed = m.layers - i == stages - stage;
    if ((full || needed) && stage + 1 < stages) ++stage;
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> chunk_layers(const ModelSpec& model, const Layout& layout, bool balanced) {
  const std::int64_t chunks = layout.pipeline * layout.virtual_stages, more = model.layers % chunks;
  if (balanced && layout.virtual_stages == 1 && chunks > 1) return layers_by_cost(model, chunks);
  if (more == 0 || chunks > model.layers) return {};  // if chunks > layers: the layout says which have none
  std::vector<std::int64_t> out(static_cast<std::size_t>(chunks), model.layers / chunks);
  std::for_each(out.begin(), out.begin() + more, [](std::int64_t& layers) { ++layers; });
  return out;
}

StepProgram StepProgram::to_peak() const {
  StepProgram out = *this;
  out.options.last_microbatch = 0;
  out.options.step_microbatches = options.microbatches;
  out.options.microbatches = std::min(options.microbatches, microbatches_to_peak(layout));
  return out;
}

double StepProgram::even_rows() const {
  const std::int64_t senders = layout.whole_experts ? layout.tensor : 1;  // they share a data rank's tokens
  return as_double(layout.microbatch * options.seq / layout.context * model.top_k) / as_double(senders);
}

StepProgram step_program(const ModelSpec& model, const Layout& layout, const ProgramOptions& options,
                         const StackSpec& stack, bool shared_cores) {
  StepProgram out{model, with_stack_layers(stack, model, layout), options};
  take_memory(stack, out.options);
  out.options.transport_scratch = shared_cores;
  return out;
}

StepProgram step_program(const RunSpec& run, const StackSpec& stack, bool shared_cores) {
  return step_program(run.model, run.layout, program_options(run), stack, shared_cores);
}

void take_memory(const StackSpec& stack, ProgramOptions& options) {
  options.memory = stack.memory;
  options.materialised_scores = stack.attention == AttentionKernels::unfused;
}

Layout with_stack_layers(const StackSpec& stack, const ModelSpec& model, Layout layout) {
  stack.check_layout(layout);
  // Stacks like Megatron-LM keep weights resident and distribute layers as the layout does: the ends count as layers.
  const bool as_layout = stack.memory.resident_weights && !stack.balanced_stages;
  if (layout.chunk_layers.empty() && !as_layout)
    layout.chunk_layers = chunk_layers(model, layout, stack.balanced_stages);
  return layout;
}

}  // namespace wt
