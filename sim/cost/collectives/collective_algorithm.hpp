// What each algorithm of an all-reduce puts on NVLink and on the NICs, what it waits for, and which one NCCL takes. The
// other collectives have one each: all-gather and reduce-scatter a ring, broadcast a chain along it, all-to-all direct
// exchange, send a message.
#pragma once
#include <cstdint>
#include <optional>

#include "sim/cost/ops/all_reduce.hpp"
#include "sim/program/program.hpp"

namespace wt {

/// Bytes of one GPU, the same out as in, for each byte of the buffer.
struct PortBytes {
  double nvlink = 0, nic = 0;
};

/// Of an all-gather's or reduce-scatter's full buffer: a ring, once round. Arguments as below.
PortBytes gather_ports(double ranks, double nodes, double members);

/// Of a GPU on a node that holds `members` of the group's `ranks`. A ring moves (n-1)/n of the buffer twice over every
/// node boundary, a hierarchical one (N-1)/N; in two trees over more than two nodes the fullest node sends the buffer
/// twice (once up and down inside one tree and a half up the other, with two children), on two nodes once. All nodes
/// count as the fullest, which the others wait for: the published NVLSTree curves of 4 to 1,024 nodes of DGX H100 end
/// at 0.92-0.96 of that rate, and two nodes of B200 at 0.96 of theirs.
PortBytes all_reduce_ports(AllReduce algorithm, double ranks, double nodes, double members);

/// Share of `bytes` that each rank sends over its slowest link in a ring: bus bandwidth = share * bytes / time.
/// 2 (n-1)/n for an all-reduce, 1 for a broadcast and for a send to the next rank, (n-1)/n otherwise (nccl-tests,
/// PERFORMANCE.md).
double bus_share(OpKind kind, double ranks);

constexpr double kUsableNic = 48.5 / 50.0;  ///< of a ConnectX-7's nominal rate (SimAI's constants)

/// What of a machine decides how its all-reduces go.
struct AllReduceMachine {
  double nvlink_Bps = 0, nic_Bps = 0;  ///< nominal, one direction, per GPU
  std::int64_t nvls_ranks = 0;         ///< fewest ranks on a node for which the switch adds; 0 = never
  std::optional<AllReduce> only = {};  ///< its library has no other (NCCL_ALGO, or a library of its own)
};

/// From how many ranks on a node the switch adds: more than 4 on H200, more than 5 on B200 (NCCL 2.27, stas00's
/// ml-engineering), never before Hopper. By generation: 8 Ampere, 9 Hopper, 10 Blackwell.
std::int64_t nvls_least_ranks(int generation);

/// Seconds that the ports take for each byte of the buffer at their nominal rates.
double all_reduce_wire_s(AllReduce algorithm, const AllReduceMachine& machine, std::int64_t ranks, std::int64_t nodes);
/// The least that a transfer takes: NVLink's nominal rate, and kUsableNic of a NIC's.
double all_reduce_least_s(AllReduce algorithm, const AllReduceMachine& machine, std::int64_t ranks, std::int64_t nodes);

/// Of NCCL's three ways to hand data over: flags in every 8 or 128 bytes, or a fence after each chunk.
enum class Protocol { ll, ll128, simple };

/// Seconds by NCCL's own cost model (src/graph/tuning.cc 2.30.7, Intel hosts), whose rates per channel are replaced by
/// the share of a port that its channels reach.
struct NcclTime {
  double latency_s = 0, s_per_byte = 0;
};
NcclTime nccl_time(AllReduce algorithm, Protocol protocol, const AllReduceMachine& machine, std::int64_t ranks,
                   std::int64_t nodes);

/// The algorithm that NCCL takes: by nccl_time the fastest of those the machine has, with any protocol. Ring is always
/// there, the trees on several nodes.
AllReduce nccl_all_reduce(const AllReduceMachine& machine, double bytes, std::int64_t ranks, std::int64_t nodes);

}  // namespace wt
