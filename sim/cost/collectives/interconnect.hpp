// What joins the GPUs of a machine, as typed facts: made once, when a table is read, from its own columns or from a
// cell such as "8x400 Gb/s InfiniBand".
#pragma once
#include <cstdint>
#include <string>

namespace wt {

struct Interconnect {
  std::string fabric;     ///< as the table names it; collectives measured on a fabric of this name speak for it
  std::string transport;  ///< "IB" (InfiniBand and RoCE), "EFA v2" (EFA and its generation), "TCPX", "Slingshot"
  double node_Bps = 0;    ///< all adapters of a node, one direction; 0 = not said
  std::int64_t gpus_per_node = 8;  ///< that share these adapters
  std::int64_t nvlink_domain = 8;  ///< GPUs behind one NVLink switch: those of a node, or of a rack
  bool adapters_assumed = false, domain_assumed = false;  ///< the source does not say them

  /// What a group of this many GPUs takes for granted of it, in words; empty = nothing.
  std::string assumed(std::int64_t gpus) const;
};

/// GPUs of a usual host: four beside Grace CPUs, else eight.
std::int64_t gpus_of_host(const std::string& gpu);

/// The transport without its generation: "EFA".
std::string transport_family(const std::string& transport);

/// Reads adapters in any of these forms, instances of AWS by name, and racks (NVL72): "8x400G", "4x100 Gb/s RoCE",
/// "8x50 GB/s" (bytes), "8x NDR-400", "8 NICs of 400 Gb", "400 Gb/s per GPU", "3.2 Tb/s", "AWS p5.48xlarge". Clauses
/// about NVLink or XGMI say nothing of adapters. node_Bps is 0 where it finds none. What says neither EFA, TCPX nor
/// Slingshot is IB. Slingshot is a transport of its own, because NCCL reaches it through libfabric as it does EFA, and
/// no time over it was published.
Interconnect read_interconnect(const std::string& said, std::int64_t gpus_per_node);

/// The same, and what is usual for this GPU where the text does not say: an adapter a GPU of the rate that HGX
/// reference designs of its generation have (800 Gb/s with B300 and GB300), and racks of 72 of Grace-Blackwell.
Interconnect interconnect_of(const std::string& said, const std::string& gpu, std::int64_t gpus_per_node);

}  // namespace wt
