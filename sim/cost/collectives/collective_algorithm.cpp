#include "sim/cost/collectives/collective_algorithm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "configs/base/number.hpp"

namespace wt {
namespace {

// Shares of a port's rate that NCCL's channels reach: 20.6 of NVLink4's 25 GB/s a link, 12 GB/s of 100 Gb/s.
constexpr double kNvlinkShare = 0.82, kNicShare = 0.96;
constexpr double kTreeShare = 0.92, kSwitchShare = 0.85;  // of those rates; Blackwell's switch 0.74
constexpr double kLowLatencyNvlink = 0.31;                // LL's bus bandwidth: 87.7 of 300, 141 of 450 GB/s
constexpr double kLowLatencyTwo_Bps = 39e9, kLowLatencyMore_Bps = 20.4e9;  // LL over two nodes, over more

/// Seconds: once for a collective, for each hop inside a node, for each hop between nodes.
struct Hops {
  double base, nvlink, network;
};
// By protocol: LL, LL128, Simple.
constexpr std::array<Hops, 3> kRing = {{{6.6e-6, 0.6e-6, 2.7e-6}, {14e-6, 1.9e-6, 4e-6}, {8.4e-6, 3.4e-6, 14e-6}}};
constexpr std::array<Hops, 3> kTree = {{{6.8e-6, 0.6e-6, 5e-6}, {14e-6, 1.25e-6, 8.5e-6}, {8.4e-6, 4e-6, 14e-6}}};
constexpr double kSwitch_s = 25e-6, kSwitchTree_s = 20.9e-6;  // NVLS; NVLSTree's hop between nodes
constexpr double kNetworkOverhead_s = 1e-6;                   // least time of a hop in a ring over nodes: NCCL's proxy
constexpr double kLongRing = 1.4;                             // factor on Simple's latency over several nodes

double latency_s(AllReduce algorithm, Protocol protocol, double ranks, double nodes) {
  const double members = ranks / nodes, levels = std::log2(nodes);
  const std::size_t p = static_cast<std::size_t>(protocol);
  switch (algorithm) {
    case AllReduce::ring: {
      const double hop = nodes > 1 ? std::max(kRing[p].nvlink, kNetworkOverhead_s) : kRing[p].nvlink;
      const double passes = 2 * ((ranks - nodes) * hop + (nodes - 1) * kRing[p].network);
      return (kRing[p].base + passes) * (nodes > 1 && protocol == Protocol::simple ? kLongRing : 1);
    }
    case AllReduce::tree:
      return kTree[p].base + 2 * ((members - 1) * kTree[p].nvlink + levels * kTree[p].network);
    case AllReduce::nvls:
    case AllReduce::nvls_tree:
      return kSwitch_s + 2 * levels * kSwitchTree_s;
    case AllReduce::hierarchical:  // three rings, one after another
      return 3 * kRing[p].base + 2 * ((members - 1) * kRing[p].nvlink + (nodes - 1) * kRing[p].network);
  }
  return 0;
}

double ports_s(const PortBytes& bytes, double nvlink_Bps, double nic_Bps) {
  return std::max(bytes.nvlink / nvlink_Bps, bytes.nic > 0 ? bytes.nic / nic_Bps : 0);
}

PortBytes even_ports(AllReduce algorithm, std::int64_t ranks, std::int64_t nodes) {
  return all_reduce_ports(algorithm, as_double(ranks), as_double(nodes), as_double(ranks) / as_double(nodes));
}

}  // namespace

PortBytes gather_ports(double ranks, double nodes, double members) {
  const double moved = (ranks - 1) / ranks;
  return nodes > 1 ? PortBytes{moved * (members - 1) / members, moved / members} : PortBytes{moved, 0};
}

PortBytes all_reduce_ports(AllReduce algorithm, double ranks, double nodes, double members) {
  const double inside = 2 * (members - 1) / members, added = members > 1 ? (members + 1) / members : 0;
  const double trees = (nodes > 2 ? 2 : nodes > 1 ? 1 : 0) / members;
  switch (algorithm) {
    case AllReduce::ring: {
      const PortBytes once = gather_ports(ranks, nodes, members);
      return {2 * once.nvlink, 2 * once.nic};
    }
    case AllReduce::tree:
      return {inside, trees};
    case AllReduce::nvls:
    case AllReduce::nvls_tree:
      return {added, trees};
    case AllReduce::hierarchical:
      return {inside, 2 * (nodes - 1) / nodes / members};
  }
  return {};
}

std::int64_t nvls_least_ranks(int generation) { return generation < 9 ? 0 : generation == 9 ? 5 : 6; }

double all_reduce_wire_s(AllReduce algorithm, const AllReduceMachine& machine, std::int64_t ranks, std::int64_t nodes) {
  return ports_s(even_ports(algorithm, ranks, nodes), machine.nvlink_Bps, machine.nic_Bps);
}

double all_reduce_least_s(AllReduce algorithm, const AllReduceMachine& machine, std::int64_t ranks,
                          std::int64_t nodes) {
  return ports_s(even_ports(algorithm, ranks, nodes), machine.nvlink_Bps, kUsableNic * machine.nic_Bps);
}

NcclTime nccl_time(AllReduce algorithm, Protocol protocol, const AllReduceMachine& machine, std::int64_t ranks,
                   std::int64_t nodes) {
  const double n = as_double(ranks);
  const bool tree = algorithm == AllReduce::tree,
             adds = algorithm == AllReduce::nvls || algorithm == AllReduce::nvls_tree;
  PortBytes ports = even_ports(algorithm, ranks, nodes);
  if (adds) ports.nvlink /= kSwitchShare;
  double s_per_byte =
      ports_s(ports, kNvlinkShare * machine.nvlink_Bps, kNicShare * machine.nic_Bps) / (tree ? kTreeShare : 1);
  if (protocol == Protocol::ll128) s_per_byte /= tree ? 120.0 / 128 : 0.92;
  if (protocol == Protocol::ll) {
    const double bus_Bps = nodes == 1   ? kLowLatencyNvlink * machine.nvlink_Bps
                           : nodes == 2 ? kLowLatencyTwo_Bps
                                        : kLowLatencyMore_Bps;
    s_per_byte = std::max(s_per_byte * (tree ? 3.8 : 2), (tree ? 2 : 2 * (n - 1) / n) / bus_Bps);
  }
  return {latency_s(algorithm, protocol, n, as_double(nodes)), s_per_byte};
}

AllReduce nccl_all_reduce(const AllReduceMachine& machine, double bytes, std::int64_t ranks, std::int64_t nodes) {
  if (machine.only) return *machine.only;
  AllReduce best = AllReduce::ring;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](AllReduce algorithm, Protocol protocol) {
    const NcclTime time = nccl_time(algorithm, protocol, machine, ranks, nodes);
    const double seconds = time.latency_s + bytes * time.s_per_byte;
    if (seconds < least) best = algorithm, least = seconds;
  };
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    consider(AllReduce::ring, protocol);
    if (nodes > 1) consider(AllReduce::tree, protocol);
  }
  if (machine.nvls_ranks > 0 && ranks >= machine.nvls_ranks * nodes)
    consider(nodes > 1 ? AllReduce::nvls_tree : AllReduce::nvls, Protocol::simple);
  return best;
}

double bus_share(OpKind kind, double ranks) {
  const double share = (ranks - 1) / ranks;
  return kind == OpKind::all_reduce ? 2 * share : kind == OpKind::broadcast || kind == OpKind::send ? 1 : share;
}

}  // namespace wt
