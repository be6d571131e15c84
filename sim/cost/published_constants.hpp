// What times rest on where a machine was not measured itself: constants of published measurements, read from
// configs/constants. `windtunnel calibrate --published` fits them anew.
#pragma once
#include <memory>

#include "sim/cost/memory/stack_memory.hpp"
#include "sim/cost/stacks/benchmark_times.hpp"
#include "sim/cost/stacks/step_constants.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

struct PublishedConstants {
  BenchmarkTimes benchmarks;
  StepModel steps;
  ErrorBounds step_bounds;  ///< of steps, by step_family: how far off those of other origins were
  StackMemories memory;

  /// Read once a process. Throws Error{usage} as fitted_constants does.
  static const PublishedConstants& get();
};

}  // namespace wt
