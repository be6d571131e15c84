#include "sim/cost/memory/run_program.hpp"

#include <algorithm>

#include "configs/base/number.hpp"

namespace wt {
namespace {

/// nanotron: blocks in order, a cost is a block's weights without norms; the next stage begins behind the block that
/// passes the stage's share. Every stage has a layer here, where nanotron may leave the last one the head alone.
std::vector<std::int64_t> deal_by_cost(const ModelSpec& m, std::int64_t stages) {
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

std::vector<std::int64_t> deal_layers(const ModelSpec& model, const Layout& layout, bool balanced) {
  const std::int64_t chunks = layout.pipeline * layout.virtual_stages, more = model.layers % chunks;
  if (balanced && layout.virtual_stages == 1 && chunks > 1) return deal_by_cost(model, chunks);
  if (more == 0 || chunks > model.layers) return {};  // fewer layers than chunks: the layout says which have none
  std::vector<std::int64_t> out(static_cast<std::size_t>(chunks), model.layers / chunks);
  std::for_each(out.begin(), out.begin() + more, [](std::int64_t& layers) { ++layers; });
  return out;
}

void take_memory(const StackSpec& stack, ProgramOptions& options) {
  options.memory = stack.memory;
  options.materialised_scores = stack.attention == AttentionKernels::unfused;
}

void take_stack(const StackSpec& stack, const ModelSpec& model, Layout& layout, ProgramOptions& options) {
  stack.check_layout(layout);
  take_memory(stack, options);
  // Megatron's, whose weights stay, deal as the layout does: the ends stand for layers.
  const bool as_layout = stack.memory.resident_weights && !stack.balanced_stages;
  if (layout.chunk_layers.empty() && !as_layout)
    layout.chunk_layers = deal_layers(model, layout, stack.balanced_stages);
}

RunProgram run_program(const RunSpec& run, const StackSpec& stack) {
  RunProgram out{run.model, run.layout, program_options(run), 0};
  const std::int64_t senders = run.layout.whole_experts ? run.layout.tensor : 1;  // that share a data rank's tokens
  out.rows = as_double(run.tokens_per_microbatch() * run.model.top_k) / as_double(senders);
  take_stack(stack, run.model, out.layout, out.options);
  out.options.transport_scratch = false;  // GPUs'
  out.options.last_microbatch = 0;        // a smaller last one needs less
  out.options.step_microbatches = out.options.microbatches;
  out.options.microbatches = std::min(out.options.microbatches, microbatches_to_peak(out.layout));
  return out;
}

}  // namespace wt
