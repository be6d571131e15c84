// Algorithms of an all-reduce: their bytes on NVLink and on the NICs, their latency, and which one NCCL selects. Each
// other collective has one algorithm: all-gather and reduce-scatter a ring, broadcast a chain along the ring,
// all-to-all direct exchange, send a message.
#pragma once
#include <cstdint>
#include <optional>

#include "sim/cost/ops/all_reduce.hpp"
#include "sim/program/program.hpp"

namespace wt {

/// Bytes that one GPU sends for each byte of the buffer. It receives as many.
struct PortBytes {
  double nvlink = 0, nic = 0;
};

/// All-gather or reduce-scatter, per byte of the full buffer: once round a ring. Arguments as for all_reduce_ports.
PortBytes gather_ports(double ranks, double nodes, double members);

/// All-reduce, for a GPU on a node that holds `members` of the group's n `ranks`. A ring moves (n-1)/n of the buffer
/// twice over every node boundary, the hierarchical algorithm (N-1)/N twice over N nodes. Two trees carry half the
/// buffer each. On more than two nodes, the busiest node sends the buffer twice: up and down to two children in one
/// tree, up in the other. On two nodes it sends the buffer once. All nodes count as the busiest, because the others
/// wait for it: the published NVLSTree curves of 4 to 1,024 nodes of DGX H100 end at 0.92-0.96 of that rate, and two
/// nodes of B200 at 0.96 of theirs.
PortBytes all_reduce_ports(AllReduce algorithm, double ranks, double nodes, double members);

/// Share of `bytes` that each rank sends over its slowest link in a ring: bus bandwidth = share * bytes / time.
/// 2 (n-1)/n for an all-reduce, 1 for a broadcast and for a send to the next rank, (n-1)/n otherwise (nccl-tests,
/// PERFORMANCE.md).
double bus_share(OpKind kind, double ranks);

constexpr double kUsableNic = 48.5 / 50.0;  ///< usable share of a NIC's nominal rate: ConnectX-7, SimAI's constants

/// Facts of a machine that determine its all-reduces.
struct AllReduceMachine {
  double nvlink_Bps = 0, nic_Bps = 0;  ///< nominal, one direction, per GPU
  std::int64_t nvls_ranks = 0;         ///< fewest ranks on a node for which the switch reduces; 0 = never
  std::optional<AllReduce> only = {};  ///< the only algorithm of its library (set by NCCL_ALGO, or not NCCL)
};

/// Fewest ranks on a node for which the switch reduces; 0 = never. More than 4 on H200, more than 5 on B200 (NCCL 2.27,
/// stas00's ml-engineering), never before Hopper. Generations: 8 Ampere, 9 Hopper, 10 Blackwell.
std::int64_t nvls_least_ranks(int generation);

/// Seconds on the busiest port for each byte of the buffer, at nominal rates.
double all_reduce_wire_s(AllReduce algorithm, const AllReduceMachine& machine, std::int64_t ranks, std::int64_t nodes);
/// Lower bound of a transfer's seconds per byte: NVLink at its nominal rate, NICs at kUsableNic of theirs.
double all_reduce_least_s(AllReduce algorithm, const AllReduceMachine& machine, std::int64_t ranks, std::int64_t nodes);

/// NCCL's protocols: ll and ll128 have flags in every 8 or 128 bytes, simple has a fence after each chunk.
enum class Protocol { ll, ll128, simple };

/// Seconds by NCCL's own cost model (src/graph/tuning.cc 2.30.7, Intel hosts). Its rates per channel are replaced by
/// the share of a port that its channels reach.
struct NcclTime {
  double latency_s = 0, s_per_byte = 0;
};
NcclTime nccl_time(AllReduce algorithm, Protocol protocol, const AllReduceMachine& machine, std::int64_t ranks,
                   std::int64_t nodes);

/// The algorithm that NCCL selects: the fastest available one by nccl_time, with any protocol. The ring is always
/// available, trees on several nodes. A machine with `only` one algorithm uses that.
AllReduce nccl_all_reduce(const AllReduceMachine& machine, double bytes, std::int64_t ranks, std::int64_t nodes);

}  // namespace wt
