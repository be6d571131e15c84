#include "sim/cost/collectives/collective_question.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "configs/base/enum_words.hpp"
#include "configs/base/error.hpp"
#include "configs/base/number.hpp"
#include "configs/files/data_sheet.hpp"

namespace wt {
namespace {

// Shares of NVLink's nominal rate, from published plateaus on one node: 270 of 450 GB/s with SHARP, 232 of 300 and 370
// of 450 in a ring.
constexpr double kNvlsShare = 0.6, kRingShare = 0.8;

// Adapters of an NVLink domain that an all-reduce's trees use: 9 of a rack's 72. On twenty racks of GB200, 8 GiB more
// take 40 ms more. That is 217 GB/s, and a tree sends the buffer twice (coreweave/nccl-tests README, NCCL 2.26.2).
constexpr double kTreeAdapters = 9;

// Start of a collective over nodes: an all-reduce of 1 KiB on 8 H100 takes 16.9 us (dgxc-benchmarking). An all-to-all
// also sets up its sends: 60 us fits the small messages of A100 (ALCF) and B200 (Vultr) over InfiniBand and Slingshot.
constexpr double kStart_s = 17e-6, kExchangeStart_s = 60e-6;

// The transfer of an all-to-all takes (nodes / 2)^kCrowding times as long as on two nodes. Fits of one fabric each give
// 0.07 over Slingshot (2 to 540 nodes of Polaris), 0.02 over InfiniBand and EFA.
constexpr double kCrowding = 0.05;

/// Whether the NVLink switch reduces (SHARP).
bool switch_reduces(const CollectiveQuestion& q) {
  const CollectiveMachine& m = q.machine;
  const bool may = !m.only || *m.only == AllReduce::nvls || *m.only == AllReduce::nvls_tree;
  return q.kind == OpKind::all_reduce && m.nvlink && may && m.nvls_ranks > 0 &&
         q.group.fewest() >= as_double(m.nvls_ranks);
}

/// Usable link rate of a GPU: all of it behind a switch, else its direct links to the group's other GPUs on its node.
double nvlink_Bps(const CollectiveQuestion& q) {
  const CollectiveMachine& m = q.machine;
  if (m.direct_peers == 0) return m.nvlink_Bps;
  const double peers = q.kind == OpKind::send ? 1 : q.group.fewest() - 1;
  return m.nvlink_Bps * std::clamp(peers / as_double(m.direct_peers), 1 / as_double(m.direct_peers), 1.0);
}

/// In a ring each GPU passes its share on; with SHARP it sends the buffer once, whatever the number of GPUs.
double in_node_s(const CollectiveQuestion& q) {
  return q.bytes * (switch_reduces(q) ? 1 : bus_share(q.kind, as_double(q.group.ranks))) / nvlink_Bps(q);
}

/// GPUs of a domain that pass data on one after another, over a node's eight. Each GPU passes its part of the buffer on
/// chunk by chunk, so that 72 GPUs start later than 8, in a ring and with SHARP. On GB200 racks, 512 MiB take half a
/// millisecond longer than their bandwidth explains.
double domain_steps(const CollectiveQuestion& q) { return std::max(1.0, q.group.fewest() / 8); }

/// Latency of this ring over that of eight GPUs, by NCCL's constants of its low-latency protocol (6.6 us and 0.6 us a
/// hop, src/graph/tuning.cc 2.30.7). The latency of the switch is the same for up to eight GPUs, that of an exchange
/// for any number.
double ring_steps(const CollectiveQuestion& q) {
  if (q.kind == OpKind::all_to_all) return 1;
  if (switch_reduces(q)) return domain_steps(q);
  const double rounds = q.kind == OpKind::all_reduce ? 2 : 1;
  const auto waits_s = [&](double ranks) { return 6.6e-6 + rounds * (ranks - 1) * 0.6e-6; };
  return waits_s(as_double(q.group.ranks)) / waits_s(8);
}

/// A GPU drives its own adapters. If nodes hold different numbers of a group's ranks, the node with the fewest is the
/// slowest: each ring and tree passes through its few adapters, and in an exchange its ranks send the most to other
/// nodes.
double over_nodes_s(const CollectiveQuestion& q) {
  const double n = as_double(q.group.ranks), fewest = q.group.fewest();
  const double adapters_Bps = q.machine.nic_Bps * std::min(fewest, as_double(q.machine.nvlink_domain));
  const double trees_Bps = std::min(adapters_Bps, q.machine.nic_Bps * kTreeAdapters);
  if (q.kind == OpKind::send) return std::max(q.bytes / std::min(q.machine.nic_Bps, adapters_Bps), in_node_s(q));
  if (q.kind == OpKind::all_to_all) return q.bytes * (n - fewest) / n * fewest / adapters_Bps;
  // Two nodes first reduce inside, then exchange their sums. More nodes use a ring or trees through every adapter.
  if (q.kind == OpKind::all_reduce && q.group.nodes == 2)
    return std::max(q.bytes / trees_Bps, in_node_s(q) / (switch_reduces(q) ? kNvlsShare : kRingShare));
  return std::max(q.bytes * bus_share(q.kind, n) / (q.kind == OpKind::all_reduce ? trees_Bps : adapters_Bps),
                  in_node_s(q));
}

CollectiveMachine of_sheet(const DataSheet& sheet) {
  CollectiveMachine out;
  out.nvlink_Bps = sheet.link_Bps;
  out.nvls_ranks = sheet.nvlink() ? nvls_least_ranks(sheet.generation) : 0;
  out.generation = sheet.generation;
  out.nvlink = sheet.nvlink();
  out.xgmi = sheet.amd;
  return out;
}

/// GPUs have direct links if these reach every other GPU of the domain; else a switch joins them.
void join(CollectiveMachine& machine, const DataSheet& sheet, std::int64_t domain) {
  machine.nvlink_domain = domain;
  machine.direct_peers = domain <= sheet.direct_peers + 1 ? sheet.direct_peers : 0;
  if (machine.direct_peers > 0) machine.nvls_ranks = 0;
}

}  // namespace

CollectiveMachine machine_of_link(double nvlink_Bps, double nic_Bps) {
  CollectiveMachine out;
  out.nvlink_Bps = nvlink_Bps;
  out.nic_Bps = nic_Bps;
  out.nvlink = nvlink_Bps > 64e9;
  out.generation = nvlink_Bps >= 900e9 ? 10 : nvlink_Bps >= 450e9 ? 9 : nvlink_Bps >= 200e9 ? 8 : 7;
  out.nvls_ranks = out.nvlink ? nvls_least_ranks(out.generation) : 0;
  return out;
}

CollectiveMachine machine_of(const ClusterSpec& cluster, std::size_t kind) {
  const NodeSpec& node = cluster.of_kind(kind);
  const auto sheet = data_sheet(node.gpu_name);
  CollectiveMachine out = sheet ? of_sheet(*sheet) : machine_of_link(node.nvswitch_Bps, 0);
  out.nvlink_Bps = node.nvswitch_Bps;
  out.nic_Bps = cluster.nic_per_gpu_Bps(node);
  out.nvlink_domain = cluster.gpus_per_node;
  if (sheet) join(out, *sheet, cluster.gpus_per_node);
  out.transport = cluster.transport;
  out.fabric = cluster.fabric;
  out.hop_s = cluster.nic_latency_s;
  return out;
}

CollectiveMachine machine_of(const std::string& gpu, const Interconnect& interconnect) {
  const auto sheet = data_sheet(gpu);
  if (!sheet) throw_usage("no data sheet of '{}'", gpu);
  CollectiveMachine out = of_sheet(*sheet);
  out.nic_Bps = interconnect.node_Bps / as_double(interconnect.gpus_per_node);
  join(out, *sheet, interconnect.nvlink_domain);
  out.transport = interconnect.transport;
  out.fabric = interconnect.fabric;
  return out;
}

RankGroup RankGroup::strided(std::int64_t ranks, std::int64_t stride, std::int64_t per_domain) {
  const std::int64_t on_node =
      std::clamp<std::int64_t>(per_domain / std::max<std::int64_t>(1, stride), 1, std::max<std::int64_t>(1, ranks));
  const std::int64_t nodes = (ranks + on_node - 1) / on_node;
  return {ranks, nodes, ranks - (nodes - 1) * on_node};
}

RankGroup RankGroup::even(std::int64_t ranks, std::int64_t nodes) {
  return {(ranks + nodes - 1) / nodes * nodes, nodes};
}

double RankGroup::fewest() const {
  return fewest_on_node > 0 ? as_double(fewest_on_node) : as_double(ranks) / as_double(nodes);
}

CollectiveForm form_of(OpKind kind) {
  return kind == OpKind::all_reduce   ? CollectiveForm::reduce
         : kind == OpKind::all_to_all ? CollectiveForm::exchange
                                      : CollectiveForm::gather;
}

std::string to_string(CollectiveForm form) { return word_for(form, std::array{"all-reduce", "gather", "exchange"}); }

LinkLoad link_load(const CollectiveQuestion& q) {
  LinkLoad out;
  if (!q.many()) {
    out.link = q.machine.xgmi ? "XGMI"
               : !q.machine.nvlink
                   ? "PCIe"
                   : "NVLink" + std::to_string(q.machine.generation - 5) + (switch_reduces(q) ? " SHARP" : " ring");
    out.steps = ring_steps(q);
    out.transfer_s = in_node_s(q);
    return out;
  }
  const double nodes = as_double(q.group.nodes);
  const bool exchange = q.kind == OpKind::all_to_all;
  out.link = transport_family(q.machine.transport);
  out.start_s = exchange ? kExchangeStart_s : kStart_s;
  out.steps = q.kind == OpKind::all_reduce ? std::log2(nodes)
              : q.kind == OpKind::send     ? 1
              : exchange                   ? as_double(q.group.ranks) - q.group.fewest()
                                           : nodes - 1;
  // A tree passes each level twice, a ring each node; an exchange sends to all at once.
  out.hops = q.kind == OpKind::all_reduce ? 2 * out.steps : exchange ? 1 : out.steps;
  if (!exchange && q.kind != OpKind::send) out.steps *= domain_steps(q);
  out.transfer_s = over_nodes_s(q);
  if (exchange) out.crowding = std::pow(nodes / 2, kCrowding);
  return out;
}

double pool_bytes(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) {
  const double per_node = as_double(ranks) / as_double(nodes);
  if (kind == OpKind::all_to_all && nodes > 1) return bytes * (as_double(ranks) - per_node) / as_double(ranks);
  if (kind == OpKind::send) return bytes;
  return bytes * bus_share(kind, as_double(ranks)) / (nodes > 1 ? per_node : 1.0);
}

double wire_s(const CollectiveQuestion& q, AllReduce algorithm) {
  if (q.kind == OpKind::all_reduce)
    return q.bytes * all_reduce_wire_s(algorithm, q.machine, q.group.ranks, q.group.nodes);
  return pool_bytes(q.kind, q.bytes, q.group.ranks, q.group.nodes) /
         (q.many() ? q.machine.nic_Bps : q.machine.nvlink_Bps);
}

double least_s(const CollectiveQuestion& q, AllReduce algorithm) {
  if (q.kind == OpKind::all_reduce)
    return q.bytes * all_reduce_least_s(algorithm, q.machine, q.group.ranks, q.group.nodes);
  return wire_s(q, algorithm) / (q.many() ? kUsableNic : 1);
}

}  // namespace wt
