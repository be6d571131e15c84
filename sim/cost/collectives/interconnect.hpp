// The links between a machine's GPUs, as typed facts. They are read once, with the table: from its own columns or from
// a cell such as "8x400 Gb/s InfiniBand".
#pragma once
#include <cstdint>
#include <string>

namespace wt {

struct Interconnect {
  std::string fabric;     ///< name in the table; collectives measured on a fabric of this name apply to it
  std::string transport;  ///< "IB" (InfiniBand and RoCE), "EFA v2" (EFA and its generation), "TCPX", "Slingshot"
  double node_Bps = 0;    ///< all adapters of a node, one direction; 0 = unknown
  std::int64_t gpus_per_node = 8;  ///< GPUs that share these adapters
  std::int64_t nvlink_domain = 8;  ///< GPUs behind one NVLink switch: those of a node, or of a rack
  bool adapters_assumed = false, domain_assumed = false;  ///< not stated by the source

  /// Assumed facts that a group of this many GPUs depends on, in words; empty = none.
  std::string assumed(std::int64_t gpus) const;
};

/// GPUs of a usual host: four with Grace CPUs, else eight.
std::int64_t gpus_of_host(const std::string& gpu);

/// The transport without its generation: "EFA".
std::string transport_family(const std::string& transport);

/// Reads adapters in any of these forms, AWS instances by name, and racks (NVL72): "8x400G", "4x100 Gb/s RoCE", "8x50
/// GB/s" (bytes), "8x NDR-400", "8 NICs of 400 Gb", "400 Gb/s per GPU", "3.2 Tb/s", "AWS p5.48xlarge". Clauses about
/// NVLink or XGMI are skipped. node_Bps is 0 if no adapters are found. The transport is IB unless the text names EFA,
/// TCPX or Slingshot. Slingshot is a transport of its own, because NCCL reaches it through libfabric as it does
/// EFA, with latencies of its own.
Interconnect read_interconnect(const std::string& said, std::int64_t gpus_per_node);

/// As read_interconnect, but with this GPU's usual values where the text has none: one adapter per GPU, at the rate of
/// HGX reference designs of its generation (800 Gb/s with B300 and GB300), and racks of 72 for Grace-Blackwell.
Interconnect interconnect_of(const std::string& said, const std::string& gpu, std::int64_t gpus_per_node);

}  // namespace wt
