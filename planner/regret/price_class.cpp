#include "planner/regret/price_class.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace wt {
namespace {

/// Factor at an end of the interval. A very wide interval keeps it above 0.
double at_end(double relative_spread, IntervalEnd end) {
  constexpr double kLeast = 0.1;
  return end == IntervalEnd::low ? std::max(kLeast, 1 - relative_spread) : 1 + relative_spread;
}

}  // namespace

double ClassAtEnd::factor(const WorkItem& item, Price price) const {
  if (!moved_.kernels.contains(item.kernel) || !(price.seconds > 0)) return 1;
  on_kind(off_by_, kind_).widen(price);
  return (end_ == IntervalEnd::low ? price.low_s : price.high_s) / price.seconds;
}

Price ClassAtEnd::item(const WorkItem& item, const BoundRows& rows) const {
  Price price = wrapped().item(item, rows);
  return price *= factor(item, price);
}

Price ClassAtEnd::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  Price price = wrapped().segment(op, rows, clock);
  double before_s = 0, after_s = 0;
  for (const WorkItem& item : op.work) {
    if (moved_.kernels.empty()) return price;
    const Price each = wrapped().item(item, rows);
    const double seconds = each.seconds * clock.factor(item, rows.sum);
    before_s += seconds;
    after_s += seconds * factor(item, each);
  }
  return before_s > 0 ? price *= after_s / before_s : price;
}

CollectivePrice ClassAtEnd::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  CollectivePrice price = wrapped().collective(kind, bytes, ranks, nodes);
  if (!moved_.collectives.contains({kind, nodes > 1})) return price;
  CollectivePrice wide = price;
  on_kind(off_by_, kind_).widen(wide);
  const double factor = at_end(wide.relative_spread, end_);
  price.latency_s *= factor;
  price.cpu_s *= factor;
  price.efficiency = std::min(1.0, price.efficiency / factor);  // pools have no more than their capacity
  return price;
}

MachineTraits ClassAtEnd::moved_traits() const {
  MachineTraits traits = wrapped().traits();
  CommunicationSlowdown& slowdown = traits.communication_slowdown;
  if (moved_.slowdown) slowdown.share = end_ == IntervalEnd::low ? slowdown.low : slowdown.high;
  return traits;
}

Price AskedPrices::segment(const Op& op, const BoundRows& rows, Clock clock) const {
  for (const WorkItem& item : op.work) asked_.kernels.insert(item.kernel);
  return wrapped().segment(op, rows, clock);
}

CollectivePrice AskedPrices::collective(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) const {
  asked_.collectives.emplace(kind, nodes > 1);
  return wrapped().collective(kind, bytes, ranks, nodes);
}

namespace {

std::string words(OpKind kind, bool between) {
  return fmt::format("{} {}", to_string(kind), between ? "between nodes" : "within a node");
}

}  // namespace

std::vector<PriceClass> single_classes(const PriceClass& all) {
  std::vector<PriceClass> out;
  for (const Kernel kernel : all.kernels) out.push_back({.name = to_string(kernel), .kernels = {kernel}});
  for (const auto& [kind, between] : all.collectives)
    out.push_back({.name = words(kind, between), .collectives = {{kind, between}}});
  if (all.slowdown) out.push_back({.name = "computation beside communication", .slowdown = true});
  return out;
}

std::vector<PriceClass> joint_classes(const PriceClass& all) {
  PriceClass kernels{.name = "all kernels", .kernels = all.kernels};
  PriceClass within{.name = "all collectives within a node"}, between{.name = "all collectives between nodes"};
  for (const auto& one : all.collectives) (one.second ? between : within).collectives.insert(one);
  std::vector<PriceClass> out;
  for (PriceClass& joint : std::array{std::move(kernels), std::move(within), std::move(between)})
    if (!joint.empty() && !joint.single()) out.push_back(std::move(joint));
  return out;
}

}  // namespace wt
