#include "sim/fit/row_program.hpp"

#include "sim/measurements/run_layout.hpp"

namespace wt {
namespace {

LiveMemory live_memory(const RunProgram& run, Ranks ranks) {
  return live_memory(
      build_program_set(run.model, run.layout, run.options), [&](int, int) { return run.rows; }, ranks);
}

}  // namespace

RunProgram run_program(const RunRow& row, const StackSpec& stack) { return run_program(run_spec_of(row), stack); }

Ranks printed_ranks(const MemoryFacts& facts) { return facts.first_rank_only ? Ranks::first_stage : Ranks::all; }

LiveMemory live_memory(const RunProgram& run, const MemoryFacts& facts) {
  return live_memory(run, printed_ranks(facts));
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
