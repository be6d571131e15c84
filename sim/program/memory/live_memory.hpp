// The highest memory of a step over its ranks: the replay of each rank class's program, which knows what its stack
// keeps and makes (ProgramOptions::memory).
#pragma once
#include "sim/program/compose/compose.hpp"
#include "sim/program/memory/memory_replay.hpp"

namespace wt {

/// Bytes of tensors on one GPU at its peak.
struct LiveMemory {
  double kept = 0;     ///< through the step: parameters, gradients, optimizer state
  double dynamic = 0;  ///< what comes and goes: activations, gathered weights, working sets
  double peak() const { return kept + dynamic; }
};

/// Of a program whose replay has this peak.
LiveMemory live_memory(const Program& program, double peak_bytes);

/// Of the class with most of it, or of the first stage's alone.
enum class Ranks { all, first_stage };
LiveMemory live_memory(const ProgramSet& programs, const RowsBound& rows, Ranks ranks = Ranks::all);

/// So many microbatches pass through every state of the buffers; more repeat them.
std::int64_t microbatches_to_peak(const Layout& layout);

}  // namespace wt
