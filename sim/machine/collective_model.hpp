// Prices of collectives. Two kinds of machine: ranks that communicate by CPU (Gloo: a latency and CPU seconds that
// share the host's cores with computation), and GPU clusters (NCCL: a latency by node count, and the share of the
// nominal NVLink and NIC bandwidth that a transfer of this size reaches).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/op_cost.hpp"

namespace wt {

/// One kind over one number of ranks, by CPU: latency = latency_s + latency_s_per_byte * bytes (time that no core was
/// busy for it), CPU seconds a rank = cpu_s + cpu_s_per_byte * bytes.
struct CpuCollective {
  OpKind kind = OpKind::all_gather;
  std::int64_t ranks = 0;
  double latency_s = 0, latency_s_per_byte = 0;
  double cpu_s = 0, cpu_s_per_byte = 0;
  double relative_spread = 0;
  std::int64_t points = 0;
  Evidence evidence = Evidence::assumed;
};

/// Efficiency of one measured transfer once its latency is taken off.
struct PoolPoint {
  OpKind kind = OpKind::all_gather;
  std::int64_t nodes = 1, ranks = 1;
  double bytes = 0;
  double efficiency = 1;       ///< above 1 where the switch reduces (NVLS): the bus bandwidth is not a wire rate there
  double relative_spread = 0;  ///< half width of the 80 % interval over the time
  Evidence evidence = Evidence::assumed;
  std::string source;
  std::optional<Evidence> root = {};  ///< of what it was derived from; none = evidence
};

/// Latency on this many nodes where measurements say: the smallest message's time, or what a transfer leaves for
/// latency when its bytes go at wire speed. Replaces nccl_latency_s there, and scales it for node counts that are
/// nearest to it.
struct SmallMessage {
  OpKind kind = OpKind::all_gather;
  std::int64_t nodes = 1, ranks = 1;
  double seconds = 0;
  Evidence evidence = Evidence::assumed;
};

struct CollectiveData {
  std::vector<CpuCollective> cpu;
  double nvlink_Bps = 0;  ///< nominal, one direction, per GPU
  double nic_Bps = 0;     ///< nominal, one direction, per GPU
  std::vector<PoolPoint> pools;
  std::vector<SmallMessage> small;
};

/// Latency by NCCL's own constants (src/graph/tuning.cc 2.30.7; Simple protocol, NVLink 3.4 us, network 14 us, base
/// 8.4 us): a ring over `ranks` on `nodes` passes ranks - nodes links inside nodes and nodes - 1 between them, which is
/// 37.8 us for each further node of 8 GPUs. All-reduce over several nodes: (20 + 90 log2 nodes) us, a fit of the
/// published NVLSTree curve of DGX H100. All-to-all: 11 us on one node and 37 us on two (Vultr HGX B200, smallest
/// messages), and NCCL's 1 us of network overhead for each further rank elsewhere. A message from one rank to another: 9.3
/// us inside a node, 14.5 us between nodes (the same source's send and receive).
double nccl_latency_s(OpKind kind, std::int64_t ranks, std::int64_t nodes);

/// Bytes that pass the tightest pool for one GPU: its NVLink on one node, its share of the node's NICs on several.
/// Rings move (n-1)/n of the buffer across every node boundary (all-reduce twice that), spread over the node's GPUs in
/// the group; all-to-all sends what is not for this node.
double pool_bytes(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes);

/// Highest efficiency that these pools allow: over NICs 0.97 of nominal (ConnectX-7 carries 48.5 of 50 GB/s), for an
/// all-reduce more by (n-1)/n over (N-1)/N, as it may reduce inside nodes first; on one node 1, and no limit for an
/// all-reduce, which the switch may do.
double highest_efficiency(OpKind kind, std::int64_t ranks, std::int64_t nodes);

/// Throws Error{usage} naming the benchmark where this kind was not measured; with `allow_assumed` an efficiency of
/// 0.5. A reduce-scatter without a measurement of its own takes the all-gather's on GPU clusters (the same ring), never
/// by CPU; nor does a send, whose bytes go over the same wires.
CollectivePrice price_collective(const CollectiveData& data, bool allow_assumed, OpKind kind, double bytes,
                                 std::int64_t ranks, std::int64_t nodes);

}  // namespace wt
