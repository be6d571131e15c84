// Constants of published measurements, for machines that were not measured themselves. They are read from
// configs/constants; `windtunnel calibrate --published` fits them again.
#pragma once
#include <memory>
#include <vector>

#include "sim/cost/memory/stack_memory.hpp"
#include "sim/cost/stacks/benchmark_times.hpp"
#include "sim/cost/stacks/measured_runs.hpp"
#include "sim/cost/stacks/step_constants.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

struct PublishedConstants {
  BenchmarkTimes benchmarks;
  StepModel steps;
  ErrorBounds step_bounds;  ///< of steps, by step_family: errors on other origins
  StackMemories memory;

  /// Read once per process. Throws Error{usage} as fitted_constants does.
  static const PublishedConstants& get();
  /// The published runs with their predictions. Read once per process, when first asked for.
  static const std::vector<MeasuredRun>& measured_runs();
};

}  // namespace wt
