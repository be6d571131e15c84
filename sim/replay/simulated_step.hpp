// One training step on a cluster, for `windtunnel simulate`, plans and `windtunnel validate runs`: the replayed step
// program, plus the time of work that a step does once outside of the program.
#pragma once
#include "sim/question/step_question.hpp"
#include "sim/replay/replay.hpp"

namespace wt {

struct SimulatedStep {
  ProgramSet programs;            ///< of the replayed microbatches
  ReplayResult replay;            ///< sums are of the whole step, timelines of the replayed microbatches
  std::int64_t microbatches = 0;  ///< of the step
  std::int64_t replayed = 0;      ///< the first so many are replayed; each later one takes as long as the last of these
};

struct StepOptions {
  ReplayOptions replay;
  /// Replay all microbatches. Otherwise, if routing is the same in all, those after a pipeline is full (without one:
  /// after kSteady) take as long as the last replayed one.
  bool every_microbatch = false;
};

/// Throws as build_program_set() and replay().
SimulatedStep simulated_step(const StepQuestion& question, const OpCost& cost, const StepOptions& how = {});

}  // namespace wt
