// A cluster: what shares what. kind gpu = nodes of GPUs behind an NVSwitch, one NIC share a GPU, leaf switches with an
// oversubscribed uplink, and a storage; kind shared_cores = one host whose cores are shared by all ranks (a laptop or a
// CI machine that trains with Gloo). Capacities are nominal; what transfers reach of them is the machine model's
// business. Nodes of several kinds (other GPUs, other NICs) may be in one cluster, all with as many GPUs.
#pragma once
#include <cstdint>
#include <filesystem>
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
  double nic = 1;  ///< of its slowest rail: data is cut evenly over the rails, the slowest ends last
  double nvswitch = 1;
};

/// Health of a leaf switch's uplinks.
struct LeafHealth {
  std::int64_t leaf = 0;  ///< nodes leaf * nodes_per_leaf and on
  double uplink = 1;      ///< rate of its slowest rail's uplinks, up and down, relative to healthy ones
};

/// What a node is made of.
struct NodeSpec {
  std::string gpu_name;            ///< "H100-SXM-80GB"; of shared_cores, the host's name
  double memory_bytes = 0;         ///< of one GPU, as CUDA reports it; of shared_cores, of the host
  double usable_memory_bytes = 0;  ///< of one rank: what its process may take, CUDA context and NCCL's buffers with it
  double nvswitch_Bps = 0;         ///< per GPU and direction
  std::int64_t nic_count = 0;      ///< per node, shared evenly by its GPUs
  double nic_Bps = 0;              ///< per NIC and direction
};

/// Nodes first to first + count - 1 are of another kind.
struct OtherNodes : NodeSpec {
  std::int64_t first = 0, count = 0;
};

struct ClusterSpec : NodeSpec {
  enum class Kind { gpu, shared_cores };

  std::string name;
  Kind kind = Kind::gpu;
  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 1;  ///< ranks a node, which is an NVLink domain; of shared_cores, all ranks

  std::vector<OtherNodes> others;  ///< all further nodes are what the cluster itself says; none overlap

  double nic_latency_s = 0;
  std::string transport = "IB";  ///< of collectives over NICs: IB (also RoCE), EFA with its version, TCPX, Slingshot
  std::string fabric;  ///< of a site whose own collectives are in configs/measurements/collectives.csv, by name there
  std::int64_t nodes_per_leaf = 0;
  std::int64_t nodes_per_rack = 0;  ///< 0 = not described
  double oversubscription = 1;      ///< leaf's node bandwidth over its uplink bandwidth

  double storage_write_Bps = 0;  ///< of the whole file system; 0 = not described
  double storage_read_Bps = 0;
  double storage_node_write_Bps = 0;  ///< cap of one node
  double storage_node_read_Bps = 0;

  double cores = 0;  ///< shared_cores only

  std::vector<NodeHealth> degraded;         ///< nodes that are slower than the others
  std::vector<LeafHealth> degraded_leaves;  ///< leaves whose uplinks are slower than the others'

  std::optional<PriceSpec> prices;  ///< none = nobody says what it costs

  /// Where the numbers of each section are from, "nodes 48 to 63" of other kinds.
  std::map<std::string, std::vector<Provenance>> sources;

  bool shared_cores() const { return kind == Kind::shared_cores; }
  /// 0 of the cluster's own kind, 1 + i of others[i].
  std::size_t kind_of(std::int64_t node) const;
  const NodeSpec& of_kind(std::size_t kind) const {
    return kind == 0 ? *this : static_cast<const NodeSpec&>(others[kind - 1]);
  }
  /// The cluster as if all of its nodes were of that kind.
  ClusterSpec all_of(std::size_t kind) const;
  /// Kinds among the nodes of the first `ranks` ranks, ascending.
  std::vector<std::size_t> kinds(std::int64_t ranks) const;
  /// What every one of the first `ranks` ranks may take.
  double usable_by_all_bytes(std::int64_t ranks) const;
  /// The GPU of all of the first `ranks` ranks; "" where they have several.
  std::string one_gpu(std::int64_t ranks) const;
  /// "16 nodes of 8 A100-SXM-80GB, 48 nodes of 8 H100-SXM-80GB": of the nodes that hold the first `ranks` ranks.
  std::string nodes_text(std::int64_t ranks) const;
  /// NIC bandwidth that one GPU can use, per direction.
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
  /// Uplinks may hold transfers up: leaves are oversubscribed, or some are degraded.
  bool uplinks_matter() const { return !shared_cores() && (oversubscription > 1 || !degraded_leaves.empty()); }
  /// Throws Error{usage} where ranks have several GPUs, which prices of one machine do not know.
  void check_one_gpu(std::int64_t ranks) const;
  /// Other kinds keep their places: those beyond the last node leave. Throws Error{usage} where there are other kinds
  /// and nodes come to be: nobody says of which.
  void set_nodes(std::int64_t count);
  /// The same cluster with at least `ranks` ranks; throws Error{usage} when they do not fit.
  void check_ranks(std::int64_t ranks, const std::string& where) const;
};

/// The most GPUs, at most `gpus`, that divide a batch of so many sequences: in whole nodes, or part of one. 0 of 0.
std::int64_t usable_gpus(std::int64_t gpus, std::int64_t gpus_per_node, std::int64_t global_batch);

/// Throws Error{usage}: unknown keys, units, impossible values, a section without a source.
ClusterSpec cluster_from_yaml(YamlMap& map);
/// Bandwidths of a `storage` map, of a cluster of GPUs or in its place. Throws Error{usage}.
void read_storage_rates(YamlMap& storage, ClusterSpec& cluster);
/// A cluster of GPUs of one kind, without storage, as a file that reads back to the same.
std::string cluster_to_yaml(const ClusterSpec& cluster);
/// A preset of configs/clusters by name, or a file.
ClusterSpec read_cluster(const std::string& name_or_file);
/// A file's `cluster`: a map of its own, or what read_cluster takes.
ClusterSpec cluster_of(YamlMap& file);

}  // namespace wt
