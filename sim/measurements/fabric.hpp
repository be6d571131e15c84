// What the words of a measurement say of the machine that it ran on: how fast a node's adapters are, over which
// transport, and who counted the time.
#pragma once
#include <optional>
#include <string>

#include "sim/measurements/collective_rows.hpp"

namespace wt {

constexpr const char* kSharedFabric = "shared fabric";  ///< of medians over the jobs of a fleet

struct Fabric {
  std::string transport;  ///< "IB" (InfiniBand and RoCE), "EFA v2", "TCPX", kSharedFabric
  std::string family;     ///< the transport without its version
  double node_Bps = 0;    ///< all adapters of a node, one direction
};

/// Whether it names one of AWS's instances whose adapters are known (p4d, p5, ...).
bool names_instance(const std::string& fabric);
/// As Fabric::transport; what says neither EFA nor TCPX and names no instance is InfiniBand.
std::string transport_of(const std::string& fabric);

/// Of a row over several nodes. Empty where the text names no adapters ("8x400G") and no known instance (p4d, p5, ...).
std::optional<Fabric> fabric_of(const CollectiveRow& row);

/// True where reductions happen in the network's switches.
bool reduces_in_network(const CollectiveRow& row);
/// True where the note says that NVLink SHARP was off.
bool forced_ring(const CollectiveRow& row);
/// True where a Python program timed torch.distributed, whose calls cost the host time that nccl-tests does not count:
/// the all_reduce_bench.py of stas00/ml-engineering.
bool timed_from_python(const CollectiveRow& row);

}  // namespace wt
