// Prices of collectives. Two kinds of machine: ranks that communicate by CPU (Gloo: a latency and CPU seconds that
// share the host's cores with computation), and GPU clusters (NCCL: a latency by node count, and the share of the
// nominal NVLink and NIC bandwidth that a transfer of this size reaches).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/collectives/collective_algorithm.hpp"
#include "sim/cost/op_cost.hpp"

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

/// Bus bandwidth of one measured transfer, once its latency is taken off, over the nominal rate: as nccl-tests count
/// it, whatever the algorithm was.
struct PoolPoint {
  OpKind kind = OpKind::all_gather;
  std::int64_t nodes = 1, ranks = 1;
  double bytes = 0;
  double efficiency = 1;       ///< above 1 where a ring would put more on the wire than the algorithm does
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

struct CollectiveData : AllReduceMachine {
  std::vector<CpuCollective> cpu;
  std::vector<PoolPoint> pools;
  std::vector<SmallMessage> small;
};

/// Latency by NCCL's own constants (src/graph/tuning.cc 2.30.7; Simple protocol, NVLink 3.4 us, network 14 us, base
/// 8.4 us): a ring over `ranks` on `nodes` passes ranks - nodes links inside nodes and nodes - 1 between them, which is
/// 37.8 us for each further node of 8 GPUs. All-reduce over several nodes: (20 + 90 log2 nodes) us, a fit of the
/// published NVLSTree curve of DGX H100. All-to-all: 11 us on one node and 37 us on two (Vultr HGX B200, smallest
/// messages), and NCCL's 1 us of network overhead for each further rank elsewhere. A message from one rank to
/// another: 9.3 us inside a node, 14.5 us between nodes (the same source's send and receive).
double nccl_latency_s(OpKind kind, std::int64_t ranks, std::int64_t nodes);

/// The same, of an all-reduce with the algorithm that this machine's large ones take on these nodes: trees between
/// nodes at the ratio of NCCL's constants to NVLSTree's.
double latency_s(const AllReduceMachine& machine, OpKind kind, std::int64_t ranks, std::int64_t nodes);

/// Bytes that pass the tightest pool for one GPU: its NVLink on one node, its share of the node's NICs on several.
/// Rings move (n-1)/n of the buffer across every node boundary (all-reduce twice that, a broadcast all of it), spread
/// over the node's GPUs in the group; all-to-all sends what is not for this node. This is the bus bandwidth's byte
/// count; what an all-reduce really moves follows its algorithm (all_reduce_ports).
double pool_bytes(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes);

/// Seconds that these bytes take at least: NVLink at its nominal rate, NICs at 0.97 of theirs; of an all-reduce with
/// the algorithm that NCCL takes for them.
double least_transfer_s(const AllReduceMachine& machine, OpKind kind, double bytes, std::int64_t ranks,
                        std::int64_t nodes);

/// An all-reduce whose bytes take transfer_s where the table, or another model, says so: NCCL's algorithm for it, and
/// the efficiency of that one's load; no faster than its wires.
void set_all_reduce(CollectivePrice& price, const AllReduceMachine& machine, double bytes, double transfer_s,
                    std::int64_t ranks, std::int64_t nodes);

/// An all-reduce takes the time of the table, and the load of its algorithm (nccl_all_reduce); with another number of
/// ranks or nodes, the share of the wire that this load had. On one node a ring is no faster than an all-gather, where
/// that was measured. Messages smaller than the table's over nodes go by NCCL's LL protocol where that is faster.
/// Throws Error{usage} naming the benchmark where this kind was not measured; with `allow_assumed` an efficiency of
/// 0.5. A reduce-scatter or broadcast without a measurement of its own takes the all-gather's on GPU clusters (the same
/// ring), a broadcast by CPU too; so does a send on GPU clusters, whose bytes go over the same wires.
CollectivePrice price_collective(const CollectiveData& data, bool allow_assumed, OpKind kind, double bytes,
                                 std::int64_t ranks, std::int64_t nodes);

}  // namespace wt
