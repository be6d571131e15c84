#include "planner/regret/time_class.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace wt {
namespace {

/// Factor at an end of the interval. It stays above 0 even if the interval is very wide.
double at_end(double relative_spread, IntervalEnd end) {
  constexpr double kLeast = 0.1;
  return end == IntervalEnd::low ? std::max(kLeast, 1 - relative_spread) : 1 + relative_spread;
}

}  // namespace

double ClassAtEnd::factor(const WorkItem& item, TimeEstimate estimate) const {
  if (!moved_.kernels.contains(item.kernel) || !(estimate.seconds > 0)) return 1;
  on_kind(off_by_, kind_).widen(estimate);
  return (end_ == IntervalEnd::low ? estimate.low_s : estimate.high_s) / estimate.seconds;
}

TimeEstimate ClassAtEnd::item(const WorkItem& item, const BoundRows& rows) const {
  TimeEstimate estimate = wrapped().item(item, rows);
  return estimate *= factor(item, estimate);
}

TimeEstimate ClassAtEnd::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  TimeEstimate estimate = wrapped().segment(op, rows, clock);
  double before_s = 0, after_s = 0;
  for (const WorkItem& item : op.work) {
    if (moved_.kernels.empty()) return estimate;
    const TimeEstimate each = wrapped().item(item, rows);
    const double seconds = each.seconds * clock.factor(item, rows.sum);
    before_s += seconds;
    after_s += seconds * factor(item, each);
  }
  return before_s > 0 ? estimate *= after_s / before_s : estimate;
}

CollectiveEstimate ClassAtEnd::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  CollectiveEstimate estimate = wrapped().collective(kind, bytes, ranks, nodes);
  if (!moved_.collectives.contains({kind, nodes > 1})) return estimate;
  CollectiveEstimate wide = estimate;
  on_kind(off_by_, kind_).widen(wide);
  const double factor = at_end(wide.relative_spread, end_);
  estimate.latency_s *= factor;
  estimate.cpu_s *= factor;
  estimate.efficiency = std::min(1.0, estimate.efficiency / factor);  // at most the capacity of the pools
  return estimate;
}

MachineTraits ClassAtEnd::moved_traits() const {
  MachineTraits traits = wrapped().traits();
  CommunicationSlowdown& slowdown = traits.communication_slowdown;
  if (moved_.slowdown) slowdown.share = end_ == IntervalEnd::low ? slowdown.low : slowdown.high;
  return traits;
}

TimeEstimate AskedTimes::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  for (const WorkItem& item : op.work) asked_.kernels.insert(item.kernel);
  return wrapped().segment(op, rows, clock);
}

CollectiveEstimate AskedTimes::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  asked_.collectives.emplace(kind, nodes > 1);
  return wrapped().collective(kind, bytes, ranks, nodes);
}

namespace {

std::string words(OpKind kind, bool between) {
  return fmt::format("{} {}", to_string(kind), between ? "between nodes" : "within a node");
}

}  // namespace

std::vector<TimeClass> single_classes(const TimeClass& all) {
  std::vector<TimeClass> out;
  for (const Kernel kernel : all.kernels) out.push_back({.name = to_string(kernel), .kernels = {kernel}});
  for (const auto& [kind, between] : all.collectives)
    out.push_back({.name = words(kind, between), .collectives = {{kind, between}}});
  if (all.slowdown) out.push_back({.name = "computation beside communication", .slowdown = true});
  return out;
}

std::vector<TimeClass> joint_classes(const TimeClass& all) {
  TimeClass kernels{.name = "all kernels", .kernels = all.kernels};
  TimeClass within{.name = "all collectives within a node"}, between{.name = "all collectives between nodes"};
  for (const auto& one : all.collectives) (one.second ? between : within).collectives.insert(one);
  std::vector<TimeClass> out;
  for (TimeClass& joint : std::array{std::move(kernels), std::move(within), std::move(between)})
    if (!joint.empty() && !joint.single()) out.push_back(std::move(joint));
  return out;
}

}  // namespace wt
