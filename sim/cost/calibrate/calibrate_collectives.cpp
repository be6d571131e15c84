// Collectives of profiles: latency and CPU seconds of ranks that communicate by CPU, points for the estimator on GPUs.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/cost/calibrate/calibration.hpp"
#include "sim/statistics/non_negative_fit.hpp"

namespace wt::detail {
namespace {

constexpr std::int64_t kGpusOfNode = 8;  // of HGX and DGX

double fingerprint_number(const Profile& profile, const std::string& key) {
  const std::string found = value_or(profile.fingerprint, key, "nothing");
  const double value = std::strtod(found.c_str(), nullptr);
  if (!(value > 0))
    throw_usage(
        "profile: fingerprint key '{}': found '{}', allowed a positive number, which collectives need; record the "
        "profile again",
        key, found);
  return value;
}

/// Requires a measurement of a collective.
OpKind kind_of(const Measurement& m) { return *collective_kind(m.kernel); }

/// Number of groups that ran the collective at the same time. They share the machine.
std::int64_t groups_of(const Measurement& m) { return std::max<std::int64_t>(1, value_or(m.shape, "groups")); }

struct Point {
  double bytes = 0, wall_s = 0, cpu_s = 0;
  double slowdown = 1;  ///< ranks of a host over its cores, at least 1
  Evidence evidence = Evidence::assumed;
};

/// wall = latency(bytes) + slowdown * cpu(bytes): the ranks' transport threads share the host's cores.
CpuCollective fit_cpu(OpKind kind, std::int64_t ranks, const std::vector<Point>& points) {
  CpuCollective out;
  out.kind = kind;
  out.ranks = ranks;
  std::vector<std::vector<double>> cpu_features, features;
  std::vector<double> cpu_target, cpu_scale, target, scale;
  for (const Point& p : points) {
    // Errors are weighted by the wall time: a tick of the CPU clock is not the cost of a small message.
    cpu_features.push_back({p.bytes, 1});
    cpu_target.push_back(p.cpu_s);
    cpu_scale.push_back(p.wall_s);
  }
  const std::vector<double> cpu = fit_non_negative(cpu_features, cpu_target, cpu_scale);
  for (const Point& p : points) {
    features.push_back({1, p.bytes});
    target.push_back(p.wall_s - p.slowdown * (cpu[0] * p.bytes + cpu[1]));
    scale.push_back(p.wall_s);
  }
  const std::vector<double> rest = fit_non_negative(features, target, scale);
  out.cpu_s_per_byte = cpu[0];
  out.cpu_s = cpu[1];
  out.latency_s = rest[0];
  out.latency_s_per_byte = rest[1];
  out.points = static_cast<std::int64_t>(points.size());
  out.evidence = Evidence::measured;
  for (const Point& p : points) out.evidence = std::max(out.evidence, p.evidence);
  return out;
}

double wall_s(const CpuCollective& c, const Point& p) {
  return c.latency_s + c.latency_s_per_byte * p.bytes + p.slowdown * (c.cpu_s + c.cpu_s_per_byte * p.bytes);
}

void calibrate_cpu(const std::vector<Sample>& samples, Calibration& out) {
  std::map<std::pair<OpKind, std::int64_t>, std::vector<Point>> groups;
  for (const Sample& sample : samples) {
    const Measurement& m = sample.measurement;
    const std::int64_t ranks = shape_value(m, "ranks"), nodes = shape_value(m, "nodes");
    if (kind_of(m) == OpKind::send) continue;  // each rank's CPU seconds are of a send and a receive
    const auto cpu = m.counters.find("cpu_s");
    if (cpu == m.counters.end())
      throw_usage(
          "profile, measurement '{}': found no counter 'cpu_s', allowed are collectives with the CPU seconds a rank's "
          "transport spent; run 'windtunnel bench collectives' again",
          m.name());
    if (ranks < 2 || nodes < 1 || !(m.median() > 0)) continue;
    const double per_node = static_cast<double>(ranks * groups_of(m)) / static_cast<double>(nodes);
    const double cores = fingerprint_number(*sample.profile, "cores");
    groups[{kind_of(m), ranks}].push_back({static_cast<double>(shape_value(m, "bytes")), m.median(), cpu->second,
                                           std::max(1.0, per_node / cores), m.evidence.kind});
  }
  for (const auto& [key, points] : groups) {
    CpuCollective fit = fit_cpu(key.first, key.second, points);
    std::vector<double> measured, predicted, held_out;
    for (std::size_t i = 0; i < points.size(); ++i) {
      measured.push_back(points[i].wall_s);
      predicted.push_back(wall_s(fit, points[i]));
      if (points.size() < 4) continue;
      std::vector<Point> rest = points;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      if (const double guess = wall_s(fit_cpu(key.first, key.second, rest), points[i]); guess > 0)
        held_out.push_back(points[i].wall_s / guess);
    }
    const auto [low, high] = ratio_interval(held_out);
    fit.relative_spread = std::max(1 - low, high - 1);
    out.residuals.push_back(residual_row(fmt::format("{} over {} ranks", to_string(key.first), key.second),
                                         "collective", measured, predicted, held_out));
    out.data.collectives.cpu.push_back(fit);
  }
}

AllReduce all_reduce_of(const std::string& name) {
  if (const auto known = all_reduce_named(name)) return *known;
  std::string allowed;
  for (const AllReduce each : kAllReduces) allowed += (allowed.empty() ? "" : ", ") + to_string(each);
  throw_usage("profile: fingerprint key 'all_reduce': found '{}', allowed {}; leave it out where NCCL chooses", name,
              allowed);
}

/// The machine that a profile's fingerprint describes.
CollectiveMachine machine_of(const Profile& profile) {
  const auto text = [&](const char* key) { return value_or(profile.fingerprint, key); };
  CollectiveMachine out = machine_of_link(fingerprint_number(profile, "nvlink_Bps"),
                                          text("nic_Bps").empty() ? 0 : fingerprint_number(profile, "nic_Bps"));
  if (const auto sheet = data_sheet(text("device"))) out.generation = sheet->generation;
  out.nvls_ranks = text("nvls_ranks").empty() ? 0 : std::llround(fingerprint_number(profile, "nvls_ranks"));
  if (!text("all_reduce").empty()) out.only = all_reduce_of(text("all_reduce"));
  if (!text("transport").empty()) out.transport = text("transport");
  return out;
}

/// Least time of a ring on one node. A faster all-reduce used the NVLink switch.
double ring_s(const CollectivePoint& p) { return least_s(p.question(), AllReduce::ring); }

void calibrate_points(const std::vector<Sample>& samples, Calibration& out) {
  CollectiveData& data = out.data.collectives;
  data.machine = machine_of(*samples.front().profile);
  for (const Sample& sample : samples) {
    const Measurement& m = sample.measurement;
    CollectivePoint p;
    p.kind = kind_of(m);
    p.bytes = static_cast<double>(shape_value(m, "bytes"));
    p.group = {shape_value(m, "ranks"), shape_value(m, "nodes")};
    p.seconds = m.median();
    p.evidence = m.evidence.kind;
    p.root = m.evidence.root;
    p.source = m.evidence.source;
    p.relative_spread = kSparseHalfWidth;
    if (p.kind == OpKind::send)  // each rank sends to the next; the slowest message is the one between two nodes
      p.group = {2, std::min<std::int64_t>(p.group.nodes, 2)};
    if (p.group.nodes < 1 || p.group.ranks < 2 || p.bytes < 1 || !(p.seconds > 0) || groups_of(m) > 1) continue;
    if (p.group.nodes > 1 && !(data.machine.nic_Bps > 0))
      data.machine.nic_Bps = fingerprint_number(*sample.profile, "nic_Bps");
    p.machine = data.machine;
    if (p.kind == OpKind::all_reduce && p.group.nodes == 1 && p.seconds < ring_s(p) &&
        (data.machine.nvls_ranks == 0 || p.group.ranks < data.machine.nvls_ranks))
      data.machine.nvls_ranks = p.group.ranks;
    data.points.push_back(std::move(p));
  }
  if (!(data.machine.nic_Bps > 0)) data.machine.nic_Bps = data.machine.generation >= 9 ? 50e9 : 25e9;
  for (CollectivePoint& p : data.points) p.machine = data.machine;
  // Held-out predictions: each point from the other points of its form.
  const CollectiveEstimator all = CollectiveEstimator::published().with_own(data.points);
  const auto without = [&](const CollectivePoint& left_out) {
    std::vector<CollectivePoint> rest;
    for (const CollectivePoint& p : data.points)
      if (&p != &left_out && form_of(p.kind) == form_of(left_out.kind) &&
          (p.group.nodes > 1) == (left_out.group.nodes > 1))
        rest.push_back(p);
    return CollectiveEstimator::published().with_own(std::move(rest));
  };
  std::map<OpKind, std::vector<std::size_t>> kinds;
  for (std::size_t i = 0; i < data.points.size(); ++i) kinds[data.points[i].kind].push_back(i);
  for (const auto& [kind, members] : kinds) {
    std::vector<double> measured, predicted, held_out;
    for (const std::size_t i : members) {
      const CollectivePoint& p = data.points[i];
      measured.push_back(p.seconds);
      predicted.push_back(all.seconds(p.question()));
      held_out.push_back(p.seconds / without(p).seconds(p.question()));
    }
    out.residuals.push_back(residual_row(to_string(kind), "collective", measured, predicted, held_out));
    if (held_out.size() < 8) continue;
    const auto [low, high] = ratio_interval(held_out);
    for (const std::size_t i : members) data.points[i].relative_spread = std::max(1 - low, high - 1);
  }
}

}  // namespace

std::optional<OpKind> collective_kind(const std::string& kernel) {
  if (kernel == "send_recv") return OpKind::send;
  for (OpKind kind :
       {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce, OpKind::all_to_all, OpKind::broadcast})
    if (to_string(kind) == kernel) return kind;
  return std::nullopt;
}

void calibrate_collectives(const std::vector<Sample>& samples, Calibration& out) {
  if (!samples.empty()) {
    out.data.synchronous_host ? calibrate_cpu(samples, out) : calibrate_points(samples, out);
    return;
  }
  // Without measured collectives, published times of the profiles' GPU are used.
  const auto device = out.data.fingerprint.find("device");
  if (!out.data.synchronous_host && device != out.data.fingerprint.end() && data_sheet(device->second))
    out.data.collectives.machine = machine_of(device->second, interconnect_of("", device->second, kGpusOfNode));
}

}  // namespace wt::detail
