#include "sim/program/memory/live_memory.hpp"

#include <span>

namespace wt {

LiveMemory live_memory(const Program& program, double peak_bytes) {
  double kept = 0;
  for (const Buffer& buffer : program.resident)
    if (!buffer.comes_and_goes) kept += buffer.bytes.at(0);
  return {kept, peak_bytes - kept};
}

Ranks printed_ranks(const MemoryFacts& facts) {
  return facts.first_rank_only ? Ranks::first_stage : facts.last_rank_only ? Ranks::last_stage : Ranks::all;
}

LiveMemory live_memory(const ProgramSet& programs, const RowsBound& rows, Ranks ranks) {
  LiveMemory most;
  const std::span all(programs.programs);
  for (const Program& program : ranks == Ranks::all ? all : ranks == Ranks::first_stage ? all.first(1) : all.last(1)) {
    const LiveMemory own = live_memory(program, replay_memory(program, rows).peak_bytes);
    if (own.peak() > most.peak()) most = own;
  }
  return most;
}

std::int64_t microbatches_to_peak(const Layout& layout) {
  // A pipeline's first stage begins with one forward pass per stage; with chunks 2 (p - 1) + (v - 1) p, fewer than two
  // rounds of p microbatches. dualpipe_v keeps 2 p + 1 chunks and needs two rounds.
  if (layout.pipeline > 1) return layout.virtual_stages > 1 ? 2 * layout.pipeline : layout.pipeline + 1;
  return 2;
}

}  // namespace wt
