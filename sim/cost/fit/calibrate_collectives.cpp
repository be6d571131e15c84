// Latencies, CPU costs and efficiencies of collectives. A transport's reduce-scatter is its own thing: nothing about
// the network is derived from it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "configs/spec/support/error.hpp"
#include "sim/cost/fit/calibration.hpp"
#include "sim/cost/fit/fit.hpp"

namespace wt::detail {
namespace {

constexpr double kSmallMessage_bytes = 65536;
constexpr double kBeyondLatency =
    0.1;  // a transfer must spend this share of its time beyond the latency to tell of bandwidth
constexpr double kLeastLatency_s = 1e-6;

double fingerprint_number(const Profile& profile, const std::string& key) {
  const auto found = profile.fingerprint.find(key);
  const double value = found == profile.fingerprint.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
  if (!(value > 0))
    throw_error(Code::usage,
                "profile: fingerprint key '{}': found '{}', allowed a positive number, which collectives need; record "
                "the profile again",
                key, found == profile.fingerprint.end() ? "nothing" : found->second);
  return value;
}

/// Of a measurement that is one.
OpKind kind_of(const Measurement& m) { return *collective_kind(m.kernel); }

/// That a suite had at work at the same time; they share what there is.
std::int64_t groups_of(const Measurement& m) {
  const auto found = m.shape.find("groups");
  return found == m.shape.end() ? 1 : std::max<std::int64_t>(1, found->second);
}

struct Point {
  double bytes = 0, wall_s = 0, cpu_s = 0;
  double slowdown = 1;  ///< ranks of a host over the cores they share
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
    // Absolute errors count as far as they show in the wall time: a tick of a CPU clock is no small message's cost.
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
    if (kind_of(m) == OpKind::send) continue;  // every rank's CPU seconds are those of two messages' ends
    const auto cpu = m.counters.find("cpu_s");
    if (cpu == m.counters.end())
      throw_error(Code::usage,
                  "profile, measurement '{}': found no counter 'cpu_s', allowed are collectives with the CPU seconds a "
                  "rank's transport "
                  "spent; run 'windtunnel bench collectives' again",
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
  throw_error(Code::usage,
              "profile: fingerprint key 'all_reduce': found '{}', allowed {}; leave it out where NCCL chooses", name,
              allowed);
}

/// Latency of a kind on this many nodes, the entry of `small` made with the constants' value where there is none.
SmallMessage& latency_entry(CollectiveData& data, const PoolPoint& p) {
  for (SmallMessage& s : data.small)
    if (s.kind == p.kind && s.nodes == p.nodes) return s;
  data.small.push_back({p.kind, p.nodes, p.ranks, latency_s(data, p.kind, p.ranks, p.nodes), Evidence::derived});
  return data.small.back();
}

void calibrate_pools(const std::vector<Sample>& samples, Calibration& out) {
  CollectiveData& data = out.data.collectives;
  data.nvlink_Bps = fingerprint_number(*samples.front().profile, "nvlink_Bps");
  const std::map<std::string, std::string>& fingerprint = samples.front().profile->fingerprint;
  if (fingerprint.count("nvls_ranks"))
    data.nvls_ranks = std::llround(fingerprint_number(*samples.front().profile, "nvls_ranks"));
  if (const auto name = fingerprint.find("all_reduce"); name != fingerprint.end())
    data.only = all_reduce_of(name->second);
  struct Transfer {
    PoolPoint point;
    double seconds, load_s;
  };
  std::vector<Transfer> transfers;
  for (const Sample& sample : samples) {
    const Measurement& m = sample.measurement;
    PoolPoint p{kind_of(m),
                shape_value(m, "nodes"),
                shape_value(m, "ranks"),
                static_cast<double>(shape_value(m, "bytes")),
                1,
                kSparseHalfWidth,
                m.evidence.kind,
                m.evidence.source,
                m.evidence.root};
    if (p.kind == OpKind::send)  // every rank to the next one: as slow as the message between two nodes
      p.ranks = 2, p.nodes = std::min<std::int64_t>(p.nodes, 2);
    if (p.nodes < 1 || p.ranks < 2 || p.bytes < 1 || !(m.median() > 0) || groups_of(m) > 1) continue;
    if (p.nodes > 1 && !(data.nic_Bps > 0)) data.nic_Bps = fingerprint_number(*sample.profile, "nic_Bps");
    const double nominal_Bps = p.nodes > 1 ? data.nic_Bps : data.nvlink_Bps;
    transfers.push_back({p, m.median(), pool_bytes(p.kind, p.bytes, p.ranks, p.nodes) / nominal_Bps});
    // What a ring could not have done, the switch did.
    if (p.kind == OpKind::all_reduce && p.nodes == 1 && m.median() < transfers.back().load_s &&
        (data.nvls_ranks == 0 || p.ranks < data.nvls_ranks))
      data.nvls_ranks = p.ranks;
  }
  for (const Transfer& t : transfers) {
    if (t.point.bytes > kSmallMessage_bytes) continue;
    SmallMessage& latency = latency_entry(data, t.point);
    if (latency.evidence == Evidence::derived || t.seconds < latency.seconds) latency.seconds = t.seconds;
    latency.evidence = t.point.evidence;
  }
  // No transfer beats the wire: what the constants claim too much for latency is taken back.
  for (const Transfer& t : transfers) {
    SmallMessage& latency = latency_entry(data, t.point);
    const double left = t.seconds - least_transfer_s(data, t.point.kind, t.point.bytes, t.point.ranks, t.point.nodes);
    latency.seconds = std::max(std::min(latency.seconds, left), kLeastLatency_s);
  }
  std::map<OpKind, std::vector<double>> measured;
  for (Transfer& t : transfers) {
    const double beyond = t.seconds - latency_entry(data, t.point).seconds;
    if (beyond < kBeyondLatency * t.seconds) continue;
    t.point.efficiency =
        t.load_s / std::max(beyond, least_transfer_s(data, t.point.kind, t.point.bytes, t.point.ranks, t.point.nodes));
    data.pools.push_back(t.point);
    measured[t.point.kind].push_back(t.seconds);
  }
  // Each point from the others of its curve, as the price is interpolated.
  for (const auto& [kind, seconds] : measured) {
    std::vector<double> predicted, held_out;
    for (std::size_t i = 0; i < data.pools.size(); ++i) {
      const PoolPoint p = data.pools[i];
      if (p.kind != kind) continue;
      const auto time = [&](const CollectiveData& from) {
        const CollectivePrice price = price_collective(from, true, p.kind, p.bytes, p.ranks, p.nodes);
        const double load_s =
            p.kind == OpKind::all_reduce
                ? p.bytes * all_reduce_wire_s(price.algorithm, data, p.ranks, p.nodes)
                : pool_bytes(p.kind, p.bytes, p.ranks, p.nodes) / (p.nodes > 1 ? data.nic_Bps : data.nvlink_Bps);
        return price.latency_s + load_s / price.efficiency;
      };
      predicted.push_back(time(data));
      CollectiveData rest = data;
      rest.pools.erase(rest.pools.begin() + static_cast<std::ptrdiff_t>(i));
      const bool inside = std::count_if(rest.pools.begin(), rest.pools.end(),
                                        [&](const PoolPoint& o) { return o.kind == kind && o.nodes == p.nodes; }) >= 2;
      if (inside) held_out.push_back(seconds[predicted.size() - 1] / time(rest));
    }
    out.residuals.push_back(residual_row(to_string(kind), "collective", seconds, predicted, held_out));
    if (held_out.size() < 8) continue;
    const auto [low, high] = ratio_interval(held_out);
    for (PoolPoint& p : data.pools)
      if (p.kind == kind) p.relative_spread = std::max(1 - low, high - 1);
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
  if (samples.empty()) return;
  out.data.synchronous_host ? calibrate_cpu(samples, out) : calibrate_pools(samples, out);
}

}  // namespace wt::detail
