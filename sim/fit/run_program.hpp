// The step program of a published run, as its framework's stack arranges it: what its memory is asked of.
#pragma once
#include "configs/files/stack.hpp"
#include "sim/measurements/run_rows.hpp"
#include "sim/program/memory/live_memory.hpp"

namespace wt {

struct RunProgram {
  ModelSpec model;
  Layout layout;
  ProgramOptions options;
  double rows = 0;  ///< of experts on each rank and microbatch, balanced
};

/// Microbatches: as many as it takes to reach the peak. Throws Error{usage} where no layout of ours does.
RunProgram run_program(const RunRow& run, const StackSpec& stack);

/// Of the rank whose memory the run's source prints.
LiveMemory live_memory(const RunProgram& run, const MemoryFacts& facts);

/// Of the layers alone on the first stage, as papers count: states as `kept`, activations as `dynamic`.
LiveMemory layer_memory(const RunProgram& run);

}  // namespace wt
