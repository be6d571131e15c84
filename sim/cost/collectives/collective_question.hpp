// The question that a collective's time answers: how many bytes, among how many ranks and nodes, on which machine. It
// is made from a cluster file, a published run or a measurement.
#pragma once
#include <cstdint>
#include <string>

#include "configs/files/cluster.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"
#include "sim/cost/collectives/interconnect.hpp"
#include "sim/program/program.hpp"

namespace wt {

/// Facts of a machine that determine its collectives. Rates are nominal, of one GPU and one direction.
struct CollectiveMachine : AllReduceMachine {
  int generation = 7;              ///< DataSheet::generation; NVLink's is 5 less
  bool nvlink = true;              ///< false: PCIe or XGMI
  bool xgmi = false;               ///< AMD's Infinity Fabric
  std::int64_t direct_peers = 0;   ///< DataSheet::direct_peers; 0 = a switch joins the node's GPUs
  std::int64_t nvlink_domain = 8;  ///< GPUs behind one NVLink switch
  std::string transport = "IB";    ///< Interconnect::transport
  std::string fabric = {};         ///< a site with measured collectives, named as in the table
  double hop_s = 0;                ///< latency of a message through the network; 0 = as on measured clusters
};

/// Machine of one kind of the cluster's nodes. The link rate determines the generation of a GPU without a data sheet.
CollectiveMachine machine_of(const ClusterSpec& cluster, std::size_t kind = 0);
/// Machine of this GPU and interconnect. Throws Error{usage} if the GPU has no data sheet.
CollectiveMachine machine_of(const std::string& gpu, const Interconnect& interconnect);
/// Machine known only by its link rates. The NVLink rate determines the generation.
CollectiveMachine machine_of_link(double nvlink_Bps, double nic_Bps);

/// How one group's ranks are spread over NVLink domains ("nodes").
struct RankGroup {
  std::int64_t ranks = 1, nodes = 1;
  std::int64_t fewest_on_node = 0;  ///< fewest ranks of the group on any node; 0 = the same number on each

  /// Ranks `stride` apart, on domains of `per_domain` GPUs that are filled one after the other.
  static RankGroup strided(std::int64_t ranks, std::int64_t stride, std::int64_t per_domain);
  /// The same number on each node, rounded up. The replay adds the cost of an uneven spread: it loads each node by its
  /// own ranks.
  static RankGroup even(std::int64_t ranks, std::int64_t nodes);
  double fewest() const;
};

struct CollectiveQuestion {
  OpKind kind = OpKind::all_gather;  ///< a message is a send at both ends
  double bytes = 0;                  ///< as defined at Collective::bytes
  RankGroup group;
  const CollectiveMachine& machine;

  bool many() const { return group.nodes > 1; }
};

/// Collectives that share constants. gather includes scatters, broadcasts and sends: all of them are rings.
enum class CollectiveForm { reduce, gather, exchange };
CollectiveForm form_of(OpKind kind);
std::string to_string(CollectiveForm form);  ///< "all-reduce", "gather", "exchange"

/// Load of a collective on its links, without any fitted constant.
struct LinkLoad {
  std::string link;       ///< "NVLink4 ring", "NVLink4 SHARP", "PCIe", "XGMI"; over nodes the transport's family
  double start_s = 0;     ///< before the first step
  double steps = 1;       ///< one after another, each with a latency. Over nodes: log2 of the nodes for an all-reduce
                          ///< (tree), 1 for a send, a rank's peers on other nodes for an all-to-all, else nodes - 1
                          ///< (ring); more if a node is a rack
  double hops = 0;        ///< one after another, through the network
  double transfer_s = 0;  ///< of the data, at the nominal rate of the narrowest resource
  double crowding = 1;    ///< factor on the transfer: exchanges of many nodes meet on the network's links
};
LinkLoad link_load(const CollectiveQuestion& question);

/// Bytes of one GPU through the narrowest pool: its NVLink on one node, its share of the node's NICs on several. Rings
/// move (n-1)/n of the buffer across every node boundary (all-reduce twice that, broadcast all of it), spread over the
/// node's GPUs in the group. All-to-all sends what is not for this node. These are the bytes of the bus bandwidth; the
/// bytes that an all-reduce really moves depend on its algorithm (all_reduce_ports).
double pool_bytes(OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes);

/// Seconds of the load at nominal rates; CollectiveEstimate::efficiency is relative to them. `algorithm`: of an
/// all-reduce.
double wire_s(const CollectiveQuestion& question, AllReduce algorithm);
/// Lower bound of those seconds: NVLink at its nominal rate, NICs at kUsableNic of theirs.
double least_s(const CollectiveQuestion& question, AllReduce algorithm);

}  // namespace wt
