// What is asked of a collective's time: how much, among how many on how many nodes, and on what machine. Made from a
// cluster file, from a published run or from a row of measurements; every time of a collective is an answer to one.
#pragma once
#include <cstdint>
#include <string>

#include "configs/files/cluster.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"
#include "sim/cost/collectives/interconnect.hpp"
#include "sim/program/program.hpp"

namespace wt {

/// What of a machine its collectives depend on. Rates are nominal, of one GPU and one direction.
struct CollectiveMachine : AllReduceMachine {
  int generation = 7;              ///< of the GPU, as DataSheet's: of NVLink, too
  bool nvlink = true;              ///< false: PCIe or XGMI
  bool xgmi = false;               ///< AMD's Infinity Fabric
  std::int64_t direct_peers = 0;   ///< as DataSheet's, of the GPUs of a node; 0 = a switch joins them
  std::int64_t nvlink_domain = 8;  ///< GPUs behind one NVLink switch
  std::string transport = "IB";    ///< as Interconnect::transport
  std::string fabric = {};         ///< of a site whose collectives were measured, by its name in the table
  double hop_s = 0;                ///< a message's latency through the network; 0 = that of measured clusters
};

/// Nodes of one kind of the cluster. GPUs without a data sheet are taken for the generation with their link's rate.
CollectiveMachine machine_of(const ClusterSpec& cluster, std::size_t kind = 0);
/// Of a GPU by name, over these adapters.
CollectiveMachine machine_of(const std::string& gpu, const Interconnect& interconnect);
/// Of a GPU of which only the rate of its link is known.
CollectiveMachine machine_of_link(double nvlink_Bps, double nic_Bps);

/// Ranks of one group as they lie on NVLink domains ("nodes").
struct RankGroup {
  std::int64_t ranks = 1, nodes = 1;
  std::int64_t fewest_on_node = 0;  ///< of the group's ranks; 0 = as many on each

  /// Ranks `stride` apart, of domains with `per_domain` GPUs, filled one after the other.
  static RankGroup strided(std::int64_t ranks, std::int64_t stride, std::int64_t per_domain);
  /// As many on each node, rounded up: what an uneven spread costs beyond that is the replay's business, which loads
  /// each node by its own.
  static RankGroup even(std::int64_t ranks, std::int64_t nodes);
  double fewest() const;
};

struct CollectiveQuestion {
  OpKind kind = OpKind::all_gather;  ///< of messages send, whichever end asks
  double bytes = 0;                  ///< by the convention of Collective::bytes
  RankGroup group;
  const CollectiveMachine& machine;

  bool many() const { return group.nodes > 1; }
};

/// Collectives whose times have constants of their own: gathers are all rings (also scatters, broadcasts and sends).
enum class CollectiveForm { reduce, gather, exchange };
CollectiveForm form_of(OpKind kind);
std::string to_string(CollectiveForm form);  ///< "all-reduce", "gather", "exchange"

/// What a question puts on its links, before any constant.
struct LinkLoad {
  std::string link;  ///< "NVLink4 ring", "NVLink4 SHARP", "PCIe", "XGMI"; over nodes the transport's family
  double steps = 1;  ///< that latency grows with: log2 of the nodes for an all-reduce (tree), nodes - 1 else (ring;
                     ///< 1 of a send); more where a node is a rack
  double hops = 0;   ///< through the network, one after another
  double transfer_s = 0;  ///< at the nominal rate of the narrowest resource
};
LinkLoad link_load(const CollectiveQuestion& question);

/// Bytes that pass the tightest pool for one GPU: its NVLink on one node, its share of the node's NICs on several.
/// Rings move (n-1)/n of the buffer across every node boundary (all-reduce twice that, a broadcast all of it), spread
/// over the node's GPUs in the group; all-to-all sends what is not for this node. This is the bus bandwidth's byte
/// count; what an all-reduce really moves follows its algorithm (all_reduce_ports).
double pool_bytes(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes);

/// Seconds of the load that a time's efficiency is of, at nominal rates; of an all-reduce by this algorithm.
double wire_s(const CollectiveQuestion& question, AllReduce algorithm);
/// The least that it takes: NVLink at its nominal rate, NICs at kUsableNic of theirs.
double least_s(const CollectiveQuestion& question, AllReduce algorithm);

}  // namespace wt
