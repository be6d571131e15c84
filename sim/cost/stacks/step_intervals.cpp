#include "sim/cost/stacks/step_intervals.hpp"

#include <algorithm>
#include <cmath>

#include "sim/cost/stacks/stack_cost.hpp"

namespace wt {
namespace {

/// An 80 % interval of ratios, widened by an independent one.
std::pair<double, double> widened(const std::pair<double, double>& ratios, const std::pair<double, double>& by) {
  const auto both = [](double a, double b) { return std::exp(std::hypot(std::log(a), std::log(b))); };
  return {1 / both(std::min(1.0, ratios.first), by.first), both(std::max(1.0, ratios.second), by.second)};
}

}  // namespace

StepIntervals::StepIntervals(ErrorBounds bounds, const ClusterSpec& cluster, const StackSpec& stack,
                             const StepModel& steps, const BenchmarkTimes& times)
    : bounds_(std::move(bounds)), other_release_(!stack.measured_release()) {
  for (std::size_t kind = 0; kind <= cluster.others.size(); ++kind) {
    const ClusterSpec same = cluster.all_of(kind);
    const bool chip_known = steps.knows_chip(traits_of(stack, same.gpu_name).chip);
    // Steps on a chip without measured steps have the errors of products that are estimated from other GPUs.
    carried_over_.push_back(chip_known ? std::pair{1.0, 1.0} : times.items->carried_over_bounds(sheet_of(same)));
  }
}

StepRatiosByKind StepIntervals::of(const std::string& family) const {
  StepRatiosByKind out;
  for (const std::pair<double, double>& carried_over : carried_over_) {
    std::pair<double, double> ratios = bounds_.of(family);
    if (other_release_) ratios = widened(ratios, {1 / kReleaseDrift, kReleaseDrift});
    if (carried_over != std::pair{1.0, 1.0}) ratios = widened(ratios, carried_over);
    out.push_back({std::min(1.0, ratios.first), std::max(1.0, ratios.second)});
  }
  return out;
}

}  // namespace wt
