// One training step on a cluster, as `windtunnel simulate`, plans and `windtunnel validate runs` ask for it: the step
// program as this stack runs it, replayed, and what happens once a step beside it.
#pragma once
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/replay.hpp"

namespace wt {

struct SimulatedStep {
  ProgramSet programs;            ///< of the replayed microbatches
  ReplayResult replay;            ///< sums are those of the whole step, timelines of the replayed microbatches
  std::int64_t microbatches = 0;  ///< of the step
  std::int64_t replayed = 0;      ///< of these, the first ones; the others take as long as the last of them
};

struct StepOptions {
  ReplayOptions replay;
  /// Replay all microbatches, however many. Else those after a pipeline is full, or after the third where there is
  /// none, take as long as the last replayed ones, where routing does not change from one to the next.
  bool every_microbatch = false;
};

/// Throws what build_program_set() and replay() throw.
SimulatedStep simulated_step(const ModelSpec& model, const Layout& layout, ProgramOptions options,
                             const ClusterSpec& cluster, const OpCost& cost, const RoutingSource& routing,
                             const StepOptions& how = {});

}  // namespace wt
