// A cluster and what its ranks share. Kind gpu: nodes of GPUs on an NVSwitch, NICs, leaf switches with
// oversubscribed uplinks, a storage. Kind shared_cores: one host whose cores all ranks share (a laptop or a CI machine
// that trains with Gloo). Capacities are nominal; the machine model says what transfers reach of them. One cluster may
// mix nodes with different GPUs or NICs, but all have the same number of GPUs.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "configs/files/charges.hpp"
#include "configs/files/evidence.hpp"

namespace wt {

class YamlMap;

/// Health of a node as speeds relative to a healthy one.
struct NodeHealth {
  std::int64_t node = 0;
  double compute = 1;
  double nic = 1;  ///< its slowest rail: data is split evenly over the rails, and the slowest ends last
  double nvswitch = 1;
};

/// Health of a leaf switch's uplinks.
struct LeafHealth {
  std::int64_t leaf = 0;  ///< its first node is leaf * nodes_per_leaf
  double uplink = 1;      ///< rate of its slowest uplink in either direction, relative to a healthy one
};

/// The hardware of a node.
struct NodeSpec {
  std::string gpu_name;            ///< "H100-SXM-80GB"; for shared_cores, the host's name
  std::string gpu_like;            ///< the known GPU whose data sheet the file changes; "" = the sheet is built in
  double memory_bytes = 0;         ///< of one GPU, as CUDA reports it; for shared_cores, of the host
  double usable_memory_bytes = 0;  ///< limit of one rank's process memory, CUDA context and NCCL's buffers included
  double nvswitch_Bps = 0;         ///< per GPU and direction
  std::int64_t nic_count = 0;      ///< per node, shared evenly by its GPUs
  double nic_Bps = 0;              ///< per NIC and direction
};

/// Nodes `first` to `first + count - 1` have other hardware.
struct OtherNodes : NodeSpec {
  std::int64_t first = 0, count = 0;
};

struct ClusterSpec : NodeSpec {
  enum class Kind { gpu, shared_cores };

  std::string name;
  Kind kind = Kind::gpu;
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;  ///< ranks of a node, which is an NVLink domain; for shared_cores, all ranks

  std::vector<OtherNodes> others;  ///< do not overlap; all remaining nodes have the cluster's own hardware

  double nic_latency_s = 0;
  std::string transport = "IB";  ///< between NICs: IB (also RoCE), EFA with its version, TCPX, Slingshot
  std::string fabric;  ///< the site's name in configs/measurements/collectives.csv, if its collectives were measured
  std::int64_t nodes_per_leaf = 0;
  std::int64_t nodes_per_rack = 0;  ///< 0 = not described
  double oversubscription = 1;      ///< node bandwidth of a leaf over its uplink bandwidth

  double storage_write_Bps = 0;  ///< of the whole file system; 0 = not described
  double storage_read_Bps = 0;
  double storage_node_write_Bps = 0;  ///< cap of one node
  double storage_node_read_Bps = 0;

  double cores = 0;  ///< shared_cores only

  std::vector<NodeHealth> degraded;
  std::vector<LeafHealth> degraded_leaves;

  std::optional<PriceSpec> prices;  ///< none = the file has no prices

  /// Sources of the numbers, by section of the file; other hardware is under "nodes 48 to 63".
  std::map<std::string, std::vector<Provenance>> sources;

  bool shared_cores() const { return kind == Kind::shared_cores; }
  /// Kind of a node: 0 = the cluster's own, 1 + i = others[i].
  std::size_t kind_of(std::int64_t node) const;
  const NodeSpec& of_kind(std::size_t kind) const {
    return kind == 0 ? *this : static_cast<const NodeSpec&>(others[kind - 1]);
  }
  /// A copy whose nodes are all of that kind.
  ClusterSpec all_of(std::size_t kind) const;
  /// Kinds among the nodes of the first `ranks` ranks, ascending.
  std::vector<std::size_t> kinds(std::int64_t ranks) const;
  /// Usable memory of the smallest GPU among the first `ranks` ranks.
  double usable_by_all_bytes(std::int64_t ranks) const;
  /// The common GPU of the first `ranks` ranks; "" where they have different ones.
  std::string one_gpu(std::int64_t ranks) const;
  /// "16 nodes of 8 A100-SXM-80GB, 48 nodes of 8 H100-SXM-80GB": the nodes of the first `ranks` ranks.
  std::string nodes_text(std::int64_t ranks) const;
  /// NIC bandwidth per GPU and direction.
  double nic_per_gpu_Bps(const NodeSpec& node) const {
    return node.nic_Bps * static_cast<double>(node.nic_count) / static_cast<double>(gpus_per_node);
  }
  double nic_per_gpu_Bps() const { return nic_per_gpu_Bps(*this); }
  std::int64_t node_of(std::int64_t rank) const { return rank / gpus_per_node; }
  std::int64_t leaf_of(std::int64_t node) const { return node / nodes_per_leaf; }
  /// Rate of a leaf's uplinks relative to healthy ones.
  double uplink_of(std::int64_t leaf) const {
    for (const LeafHealth& entry : degraded_leaves)
      if (entry.leaf == leaf) return entry.uplink;
    return 1;
  }
  /// Whether uplinks can limit transfers: leaves are oversubscribed or degraded.
  bool uplinks_matter() const { return !shared_cores() && (oversubscription > 1 || !degraded_leaves.empty()); }
  /// Throws Error{usage} where the ranks have different GPUs, which times of a single machine cannot describe.
  void check_one_gpu(std::int64_t ranks) const;
  /// Nodes of other kinds keep their positions; those beyond `count` are dropped. Throws Error{usage} when the count
  /// grows and there are other kinds, because the kind of the new nodes is unknown.
  void set_nodes(std::int64_t count);
  /// Throws Error{usage} when `ranks` do not fit the cluster.
  void check_ranks(std::int64_t ranks, const std::string& where) const;
};

/// The most GPUs, up to `gpus`, that divide a batch of `global_batch` sequences: whole nodes or part of one; 0 = none.
std::int64_t usable_gpus(std::int64_t gpus, std::int64_t gpus_per_node, std::int64_t global_batch);

/// Throws Error{usage}: unknown keys, units, impossible values, a section without a source.
ClusterSpec cluster_from_yaml(YamlMap& map);
/// Reads a map `storage`: the bandwidths of a cluster's storage, or an override. Throws Error{usage}.
void read_storage_rates(YamlMap& storage, ClusterSpec& cluster);
/// YAML of a GPU cluster of one kind and without storage; reads back to the same.
std::string cluster_to_yaml(const ClusterSpec& cluster);
/// A preset of configs/clusters by name, or a file.
ClusterSpec read_cluster(const std::string& name_or_file);
/// Reads the key `cluster` of a file: a map, or a name for read_cluster.
ClusterSpec cluster_of(YamlMap& file);

}  // namespace wt
