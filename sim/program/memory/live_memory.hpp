// The highest memory of a step over its ranks, by the replay of each rank class's program. The program includes what
// its stack keeps (ProgramOptions::memory).
#pragma once
#include "configs/files/memory_facts.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/memory/memory_replay.hpp"

namespace wt {

/// Tensor bytes on one GPU at its peak.
struct LiveMemory {
  double kept = 0;     ///< throughout the step: parameters, gradients, optimizer state
  double dynamic = 0;  ///< temporary: activations, gathered weights, working memory
  double peak() const { return kept + dynamic; }
};

/// Splits the peak of a program's replay.
LiveMemory live_memory(const Program& program, double peak_bytes);

/// The class with the most memory of all, the first class of the first stage, or the last class of the last one.
enum class Ranks { all, first_stage, last_stage };
/// Those whose memory the trainer prints.
Ranks printed_ranks(const MemoryFacts& facts);
LiveMemory live_memory(const ProgramSet& programs, const RowsBound& rows, Ranks ranks = Ranks::all);

/// Number of microbatches that reach every state of the buffers; further ones repeat them.
std::int64_t microbatches_to_peak(const Layout& layout);

}  // namespace wt
