#include "sim/cost/collectives/collective_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "configs/spec/support/error.hpp"

namespace wt {
namespace {

// NCCL 2.30.7 src/graph/tuning.cc, Simple protocol, Intel hosts.
constexpr double kRingBase_s = 8.4e-6;
constexpr double kNvlinkHop_s = 3.4e-6;
constexpr double kNetworkHop_s = 14e-6;
constexpr double kNetworkOverhead_s = 1e-6;
constexpr double kExchangeInNode_s = 11e-6, kExchangeOverNodes_s = 37e-6;  // Vultr HGX B200, all-to-all of <= 1 KiB
constexpr double kMessageInNode_s = 9.3e-6,
                 kMessageOverNodes_s = 14.5e-6;  // Vultr HGX B200, send and receive of <= 1 KiB
constexpr double kAssumedEfficiency = 0.5;
constexpr double kSmallOverNccl =
    1.4;  // 36 us measured of 8 bytes over two B200 nodes (Vultr, InfiniBand), 25 by NCCL's constants
constexpr double kLarge_bytes = 64 << 20;         // about a layer's gradients
const AllReduceMachine kHgxH100 = {450e9, 50e9};  // where nobody said: only the choice of an algorithm rests on it

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// Share of the buffer that leaves a rank, by kind: what a different number of ranks changes.
double moved_share(OpKind kind, std::int64_t ranks) {
  if (kind == OpKind::send || kind == OpKind::broadcast) return 1;
  const double share = as_double(ranks - 1) / as_double(ranks);
  return kind == OpKind::all_reduce ? 2 * share : share;
}

CollectivePrice by_cpu(const CollectiveData& data, OpKind kind, double bytes, std::int64_t ranks) {
  const auto measured = [&](OpKind wanted) {
    return std::any_of(data.cpu.begin(), data.cpu.end(),
                       [&](const CpuCollective& each) { return each.kind == wanted; });
  };
  // Of a step's collectives none stands for another; a restore's broadcast brings each rank what a gather would.
  const OpKind source = kind == OpKind::broadcast && !measured(kind) ? OpKind::all_gather : kind;
  const CpuCollective* nearest = nullptr;
  for (const CpuCollective& each : data.cpu)
    if (each.kind == source && (!nearest || std::abs(each.ranks - ranks) < std::abs(nearest->ranks - ranks)))
      nearest = &each;
  if (!nearest)
    throw_error(
        Code::usage,
        "machine model: found no measurement of {} among ranks that communicate by CPU, allowed are measured ones "
        "(nothing is derived from another collective there); run 'windtunnel bench collectives' and calibrate "
        "with its profile",
        to_string(kind));
  const double moved = bytes * moved_share(kind, ranks) / moved_share(source, nearest->ranks);
  const double hops = as_double(ranks - 1) / as_double(nearest->ranks - 1);
  CollectivePrice price;
  price.latency_s = nearest->latency_s * hops + nearest->latency_s_per_byte * moved;
  price.cpu_s = nearest->cpu_s * hops + nearest->cpu_s_per_byte * moved;
  price.relative_spread = nearest->relative_spread;
  price.root = nearest->evidence;
  price.evidence =
      nearest->ranks == ranks && source == kind ? nearest->evidence : std::max(nearest->evidence, Evidence::derived);
  return price;
}

/// What passes the pool that a table's efficiencies are of, for each byte.
double pool_share(AllReduce algorithm, std::int64_t ranks, std::int64_t nodes) {
  const PortBytes bytes =
      all_reduce_ports(algorithm, as_double(ranks), as_double(nodes), as_double(ranks) / as_double(nodes));
  return nodes > 1 ? bytes.nic : bytes.nvlink;
}

/// From the bus bandwidth that the table has to the algorithm of this transfer.
void by_algorithm(CollectivePrice& price, const CollectiveData& data, const AllReduceMachine& machine,
                  const PoolPoint& used, double bytes, std::int64_t ranks, std::int64_t nodes, bool below_table) {
  const AllReduce algorithm = nccl_all_reduce(machine, bytes, ranks, nodes);
  // The share of the wire as if the measured transfer had gone by this algorithm: its time stays what it was.
  double share = price.efficiency * pool_share(algorithm, used.ranks, used.nodes) /
                 pool_share(AllReduce::ring, used.ranks, used.nodes);
  const bool gathers = std::any_of(data.pools.begin(), data.pools.end(),
                                   [](const PoolPoint& p) { return p.kind == OpKind::all_gather && p.nodes == 1; });
  if (nodes == 1 && ranks != used.ranks && algorithm == AllReduce::ring && gathers)
    share = std::min(share, price_collective(data, false, OpKind::all_gather, bytes, ranks, nodes).efficiency);
  const double transfer_s =
      bytes * pool_share(algorithm, ranks, nodes) / share / (nodes > 1 ? machine.nic_Bps : machine.nvlink_Bps);
  set_all_reduce(price, machine, bytes, transfer_s, ranks, nodes);
  if (!below_table || machine.only) return;
  double table_s = price.latency_s + transfer_s;
  for (const AllReduce each : {AllReduce::ring, AllReduce::tree}) {
    const NcclTime small = nccl_time(each, Protocol::ll, machine, ranks, nodes);
    const double latency = kSmallOverNccl * small.latency_s, s_per_byte = kSmallOverNccl * small.s_per_byte;
    if (latency + bytes * s_per_byte >= table_s) continue;
    table_s = latency + bytes * s_per_byte;
    price.latency_s = latency;
    price.algorithm = each;
    price.efficiency = all_reduce_wire_s(each, machine, ranks, nodes) / s_per_byte;
    price.evidence = std::max(price.evidence, Evidence::derived);
  }
}

}  // namespace

double nccl_latency_s(OpKind kind, std::int64_t ranks, std::int64_t nodes) {
  if (kind == OpKind::all_reduce && nodes > 1) return (20.0 + 90.0 * std::log2(as_double(nodes))) * 1e-6;
  if (kind == OpKind::all_to_all) {
    if (nodes == 1) return kExchangeInNode_s;
    const double elsewhere = as_double(ranks) - as_double(ranks) / as_double(nodes);
    return kExchangeOverNodes_s + kNetworkOverhead_s * std::max(0.0, elsewhere - 8);
  }
  if (kind == OpKind::send) return nodes == 1 ? kMessageInNode_s : kMessageOverNodes_s;
  const double rounds = kind == OpKind::all_reduce ? 2 : 1;
  return kRingBase_s + rounds * (as_double(ranks - nodes) * kNvlinkHop_s + as_double(nodes - 1) * kNetworkHop_s);
}

double latency_s(const AllReduceMachine& machine, OpKind kind, std::int64_t ranks, std::int64_t nodes) {
  const double fit = nccl_latency_s(kind, ranks, nodes);
  if (kind != OpKind::all_reduce || nodes == 1) return fit;
  const AllReduce algorithm = nccl_all_reduce(machine, kLarge_bytes, ranks, nodes);
  const auto nccl_s = [&](AllReduce each) {
    return nccl_time(each, Protocol::simple, machine, ranks, nodes).latency_s;
  };
  const bool tree = algorithm == AllReduce::tree || algorithm == AllReduce::nvls_tree;
  return tree ? fit * nccl_s(algorithm) / nccl_s(AllReduce::nvls_tree) : nccl_s(algorithm);
}

double pool_bytes(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) {
  const double per_node = as_double(ranks) / as_double(nodes);
  if (kind == OpKind::all_to_all)
    return nodes > 1 ? bytes * (as_double(ranks) - per_node) / as_double(ranks) : bytes * moved_share(kind, ranks);
  return bytes * moved_share(kind, ranks) / (nodes > 1 ? per_node : 1.0);
}

double least_transfer_s(const AllReduceMachine& machine, OpKind kind, double bytes, std::int64_t ranks,
                        std::int64_t nodes) {
  if (kind == OpKind::all_reduce)
    return bytes * all_reduce_least_s(nccl_all_reduce(machine, bytes, ranks, nodes), machine, ranks, nodes);
  return pool_bytes(kind, bytes, ranks, nodes) / (nodes > 1 ? kUsableNic * machine.nic_Bps : machine.nvlink_Bps);
}

void set_all_reduce(CollectivePrice& price, const AllReduceMachine& machine, double bytes, double transfer_s,
                    std::int64_t ranks, std::int64_t nodes) {
  price.algorithm = nccl_all_reduce(machine, bytes, ranks, nodes);
  if (bytes <= 0) return;
  const double least_s = bytes * all_reduce_least_s(price.algorithm, machine, ranks, nodes);
  price.efficiency = bytes * all_reduce_wire_s(price.algorithm, machine, ranks, nodes) / std::max(transfer_s, least_s);
}

CollectivePrice price_collective(const CollectiveData& data, bool allow_assumed, OpKind kind, double bytes,
                                 std::int64_t ranks, std::int64_t nodes) {
  if (ranks <= 1) return {0, 0, 1.0, 0, Evidence::derived};
  if (!data.cpu.empty()) return by_cpu(data, kind, bytes, ranks);

  const auto measured = [&](OpKind wanted) {
    return std::any_of(data.pools.begin(), data.pools.end(),
                       [&](const PoolPoint& p) { return p.kind == wanted && (p.nodes > 1) == (nodes > 1); });
  };
  AllReduceMachine machine = data;
  if (!(machine.nvlink_Bps > 0)) machine.nvlink_Bps = kHgxH100.nvlink_Bps;
  if (!(machine.nic_Bps > 0)) machine.nic_Bps = kHgxH100.nic_Bps;
  CollectivePrice price;
  price.latency_s = latency_s(machine, kind, ranks, nodes);
  OpKind source = kind;
  if (!measured(kind) && (kind == OpKind::reduce_scatter || kind == OpKind::broadcast || kind == OpKind::send))
    source = OpKind::all_gather;
  if (!measured(source)) {
    if (!allow_assumed)
      throw_error(
          Code::usage,
          "machine model: found no measurement of {} over {} ranks on {} node(s), allowed are measured ones; run "
          "'windtunnel bench collectives' and calibrate with its profile, or pass --allow-assumed",
          to_string(kind), ranks, nodes);
    price.efficiency = kAssumedEfficiency;
    price.algorithm = nccl_all_reduce(machine, bytes, ranks, nodes);
    price.relative_spread = 0.5;
    price.evidence = Evidence::assumed;
    return price;
  }

  // The nearest node count by ratio; one node and several are different machines.
  std::int64_t nearest = 0;
  const auto distance = [&](std::int64_t count) {
    return std::max(as_double(count) / as_double(nodes), as_double(nodes) / as_double(count));
  };
  for (const PoolPoint& p : data.pools)
    if (p.kind == source && (p.nodes > 1) == (nodes > 1) && (nearest == 0 || distance(p.nodes) < distance(nearest)))
      nearest = p.nodes;
  for (const SmallMessage& small : data.small)
    if (small.kind == source && small.nodes == nearest)
      price.latency_s *= small.seconds / latency_s(machine, small.kind, small.ranks, small.nodes);
  const PoolPoint* smallest = nullptr;
  for (const PoolPoint& p : data.pools)
    if (p.kind == source && p.nodes == nearest && (!smallest || p.bytes <= smallest->bytes)) smallest = &p;

  // Efficiency follows what one NIC carries: a group with fewer ranks on a node puts more of its buffer on each.
  double size = bytes;
  if (nodes > 1)
    size *= (as_double(smallest->ranks) / as_double(smallest->nodes)) / (as_double(ranks) / as_double(nodes));
  const PoolPoint *below = nullptr, *above = nullptr;  // the nearest sizes; of equal ones the last measured
  for (const PoolPoint& p : data.pools) {
    if (p.kind != source || p.nodes != nearest) continue;
    if (p.bytes < size && (!below || p.bytes >= below->bytes)) below = &p;
    if (p.bytes >= size && (!above || p.bytes <= above->bytes)) above = &p;
  }
  const PoolPoint* used = above ? above : below;
  price.efficiency = used->efficiency;
  if (above && below && above->bytes != size) {
    const double share = std::log(size / below->bytes) / std::log(above->bytes / below->bytes);
    price.efficiency = std::exp(std::log(below->efficiency) + share * std::log(above->efficiency / below->efficiency));
    used = share > 0.5 ? above : below;
  }
  price.evidence = used->evidence;
  price.root = used->root.value_or(used->evidence);
  price.relative_spread = used->relative_spread;
  if (source != kind || nearest != nodes) price.evidence = std::max(price.evidence, Evidence::derived);
  if (kind == OpKind::all_reduce)
    by_algorithm(price, data, machine, *used, bytes, ranks, nodes, nodes > 1 && !below && size < used->bytes);
  return price;
}

}  // namespace wt
