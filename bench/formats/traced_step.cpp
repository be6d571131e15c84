#include "bench/formats/traced_step.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "bench/formats/kineto.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/lax_json.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostGroups = 30;

using Interval = std::pair<double, double>;  ///< us
using Intervals = std::vector<Interval>;

/// Sorted, and those that touch joined.
Intervals merged(Intervals all) {
  std::ranges::sort(all);
  Intervals out;
  for (const auto& [begin, end] : all)
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.emplace_back(begin, end);
  return out;
}

double seconds(const Intervals& merged) {
  double us = 0;
  for (const auto& [begin, end] : merged) us += end - begin;
  return 1e-6 * us;
}

/// What of `a` is not in `b`; both merged.
Intervals without(const Intervals& a, const Intervals& b) {
  Intervals out;
  auto hides = b.begin();
  for (auto [begin, end] : a) {
    while (hides != b.end() && hides->second <= begin) ++hides;
    for (auto each = hides; each != b.end() && each->first < end; ++each) {
      if (each->first > begin) out.emplace_back(begin, each->first);
      begin = std::max(begin, each->second);
    }
    if (begin < end) out.emplace_back(begin, end);
  }
  return out;
}

/// "mesh_shard, all_gather": as far as the kernel says.
std::string group_of(const nlohmann::json& event) {
  const nlohmann::json args = event.value("args", nlohmann::json::object());
  std::string out;
  for (const char* key : {"Process Group Description", "Process Group Name"})
    if (out.empty() && args.is_object()) out = text_at(args, key);
  const std::string name = args.is_object() ? text_at(args, "Collective name") : "";
  if (!name.empty()) out += (out.empty() ? "" : ", ") + name;
  std::erase_if(out, [](char c) { return c < ' ' || c > '~'; });
  return out.empty() ? "not named" : out.substr(0, 60);
}

struct Lanes {
  Intervals compute, collectives, copies;
  std::map<std::string, Intervals> groups;
};

}  // namespace

TracedStep traced_step(const nlohmann::json& document, const std::string& origin) {
  const KinetoTrace kernels = from_kineto(document, origin);  // what cannot be read is refused there
  TracedStep out;
  out.class_s = kernels.class_s, out.span_s = kernels.span_s;
  Lanes lanes;
  for (const auto& event : document.at("traceEvents")) {
    const std::string kind = text_at(event, "cat"), name = text_at(event, "name");
    if (kind == "user_annotation" && name.starts_with("ProfilerStep#")) ++out.steps;
    const auto found = kernels.kernels.find(name);
    if (text_at(event, "ph") != "X" || found == kernels.kernels.end() || !is_gpu_work(event)) continue;
    const double begin = event.at("ts").get<double>(), end = begin + event.at("dur").get<double>();
    if (found->second.kind == KernelClass::collective) {
      lanes.collectives.emplace_back(begin, end);
      const std::string group = group_of(event);
      const bool room = lanes.groups.size() < kMostGroups || lanes.groups.contains(group);
      lanes.groups[room ? group : "others"].emplace_back(begin, end);
    } else if (found->second.kind == KernelClass::transfer) {
      lanes.copies.emplace_back(begin, end);
    } else {
      lanes.compute.emplace_back(begin, end);
    }
  }
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
