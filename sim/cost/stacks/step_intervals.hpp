// How far off steps of a stack on a cluster are, by their family: what a step's interval is made of, beside the ops'
// own intervals.
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
  /// Ratios of 1: of ranks that share cores, where no steps were published.
  StepIntervals() = default;
  /// `bounds`: of steps of releases and GPUs that were measured. Wider for another release of the stack, and on a GPU
  /// that no steps were measured on. Throws Error{usage} where a GPU has no data sheet.
  StepIntervals(ErrorBounds bounds, const ClusterSpec& cluster, const StackSpec& stack, const StepModel& steps,
                const BenchmarkTimes& times);

  /// Of a step_family; one that is not known has those of all steps.
  StepRatiosByKind of(const std::string& family) const;

 private:
  ErrorBounds bounds_;
  bool other_release_ = false;
  std::vector<std::pair<double, double>> carried_over_;  ///< by kind of node, {1, 1} where steps were measured
};

}  // namespace wt
