#include "sim/fit/run_program.hpp"

#include <algorithm>

#include "configs/base/number.hpp"
#include "sim/cost/memory/stack_program.hpp"
#include "sim/measurements/run_layout.hpp"

namespace wt {
namespace {

LiveMemory live_memory(const RunProgram& run, Ranks ranks) {
  return live_memory(
      build_program_set(run.model, run.layout, run.options), [&](int, int) { return run.rows; }, ranks);
}

}  // namespace

RunProgram run_program(const RunRow& run, const StackSpec& stack) {
  RunProgram out{run.model, staged_layout_of(run), {}, 0};
  const std::int64_t senders = run.cp * (out.layout.whole_experts ? run.tp : 1);  // that share a data rank's tokens
  out.rows = as_double(run.microbatch * run.seq * run.model.top_k) / as_double(senders);
  take_stack(stack, run.model, out.layout, out.options);
  out.options.seq = run.seq;
  out.options.precision = run.precision.compute;
  out.options.precisions = run.precision.precisions;
  out.options.materialised_scores = !run.flash_attention;
  out.options.step_microbatches = run.accumulation;
  out.options.microbatches = std::min(run.accumulation, microbatches_to_peak(out.layout));
  return out;
}

LiveMemory live_memory(const RunProgram& run, const MemoryFacts& facts) {
  return live_memory(run, facts.first_rank_only ? Ranks::first_stage : Ranks::all);
}

LiveMemory layer_memory(const RunProgram& run) {
  // What a model of twice the layers has more: embedding, output projection and working sets are the same.
  RunProgram twice = run;
  twice.model.layers *= 2;
  for (std::int64_t& layers : twice.layout.chunk_layers) layers *= 2;
  const LiveMemory one = live_memory(run, Ranks::first_stage), two = live_memory(twice, Ranks::first_stage);
  return {two.kept - one.kept, two.dynamic - one.dynamic};
}

}  // namespace wt
