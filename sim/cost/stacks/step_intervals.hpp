// Errors of predicted steps of a stack on a cluster, by family. The interval of a step comes from them and from its
// ops' own intervals.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "configs/files/cluster.hpp"
#include "sim/cost/ops/step_ratios.hpp"
#include "sim/cost/stacks/benchmark_times.hpp"
#include "sim/cost/stacks/step_constants.hpp"
#include "sim/statistics/intervals.hpp"

namespace wt {

class StepIntervals {
 public:
  /// Ratios of 1, for ranks that share cores: no steps of such ranks were published.
  StepIntervals() = default;
  /// `bounds`: errors of steps on measured releases and GPUs. Intervals are wider for another release of the stack, and
  /// on a GPU without measured steps. Throws Error{usage} if a GPU has no data sheet.
  StepIntervals(ErrorBounds bounds, const ClusterSpec& cluster, const StackSpec& stack, const StepModel& steps,
                const BenchmarkTimes& times);

  /// Ratios of a step_family. An unknown family has those of all steps.
  StepRatiosByKind of(const std::string& family) const;

 private:
  ErrorBounds bounds_;
  bool other_release_ = false;
  std::vector<std::pair<double, double>> carried_over_;  ///< by kind of node, {1, 1} where steps were measured
};

}  // namespace wt
