#include "bench/formats/traced_step.hpp"

#include <algorithm>
#include <limits>

#include "bench/formats/intervals.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostGroups = 30;

struct Lanes {
  Intervals compute, collectives, copies;
  std::map<std::string, Intervals> groups;
};

}  // namespace

TracedStep traced_step(const GpuTrace& trace) {
  TracedStep out;
  out.steps = std::ssize(trace.marks);
  Lanes lanes;
  double first_s = std::numeric_limits<double>::max(), last_s = std::numeric_limits<double>::lowest();
  for (const GpuWork& work : trace.work) {
    first_s = std::min(first_s, work.begin_s), last_s = std::max(last_s, work.end_s);
    out.class_s[static_cast<std::size_t>(work.kind)] += work.end_s - work.begin_s;
    if (work.kind == KernelClass::collective) {
      lanes.collectives.emplace_back(work.begin_s, work.end_s);
      const bool room = lanes.groups.size() < kMostGroups || lanes.groups.contains(work.group);
      lanes.groups[room ? work.group : "others"].emplace_back(work.begin_s, work.end_s);
    } else if (work.kind == KernelClass::transfer) {
      lanes.copies.emplace_back(work.begin_s, work.end_s);
    } else {
      lanes.compute.emplace_back(work.begin_s, work.end_s);
    }
  }
  if (!trace.work.empty()) out.span_s = last_s - first_s;
  const Intervals compute = merged(std::move(lanes.compute)), collectives = merged(std::move(lanes.collectives));
  Intervals busy = compute;
  busy.insert(busy.end(), collectives.begin(), collectives.end());
  busy = merged(std::move(busy));
  out.compute_s = seconds(compute), out.collectives_s = seconds(collectives);
  out.exposed_s = seconds(without(collectives, compute));
  out.copies_s = seconds(without(merged(std::move(lanes.copies)), busy));
  out.idle_s = std::max(0.0, out.span_s - out.compute_s - out.exposed_s - out.copies_s);
  for (auto& [group, intervals] : lanes.groups)
    out.exposed_by_group[group] = seconds(without(merged(std::move(intervals)), compute));
  return out;
}

}  // namespace wt
