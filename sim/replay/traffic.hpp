// The pools of a cluster, and the load of a collective on them. Each GPU has NVLink out and in, and its share of the
// node's NICs out and in. Where leaf switches are oversubscribed or degraded, each (leaf, rail) has an uplink pool up
// and down; rail = the GPU's index in its node. So a group with one member a node gets one NIC, not eight. Two groups
// on all rails get half each, as on rail-aligned fabrics.
//
// Volumes are those of NCCL's algorithms. A ring moves (n-1)/n of the full buffer across every hop. A node with k
// members spreads the one hop that leaves it over the members' NICs (rings are rotated), and the k-1 others over
// NVLink. An all-reduce loads ports as its algorithm does (all_reduce_ports). What leaves a node takes a ring's path
// through the leaves.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "configs/files/cluster.hpp"
#include "sim/cluster/engine.hpp"
#include "sim/cost/collectives/collective_algorithm.hpp"
#include "sim/program/program.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/replay/representatives.hpp"

namespace wt {

/// Sums amounts on tens of thousands of pools, a few at a time.
class PoolSum {
 public:
  explicit PoolSum(std::size_t pools = 0) : amounts_(pools, 0.0) {}

  void add(int pool, double amount) {
    double& sum = amounts_[static_cast<std::size_t>(pool)];
    if (sum == 0) touched_.push_back(pool);
    sum += amount;
  }
  /// The amounts above 0 since the last call, pools ascending.
  PoolLoad take();

 private:
  std::vector<double> amounts_;  ///< by pool; 0 for untouched ones
  std::vector<int> touched_;     ///< a pool may occur twice
};

struct NodeMembers {
  std::int64_t node = 0, count = 0;
};

struct GroupInstance {
  Axis axis = Axis::world;
  std::int64_t index = 0;
  std::int64_t size = 1, nodes = 1;
  std::vector<std::int64_t> members;  ///< world ranks, ascending, simulated or not
  std::vector<NodeMembers> on_nodes;  ///< ascending; only for groups that collectives run over, on a cluster of nodes
  PoolLoad ring;  ///< bytes on the pools of simulated members, per byte of an all-gather's full buffer
};

/// The placement of a rank's group on the nodes, without its members.
struct GroupShape {
  std::int64_t size = 1, nodes = 1;
  /// Per byte of an all-gather's full buffer, alone and without uplinks: Traffic::alone_s.
  double gather_s_per_byte = 0;
  std::array<double, kAllReduces.size()> reduce_s_per_byte{};  ///< the same for an all-reduce's buffer, by algorithm
};
/// Empty if nodes and groups do not nest (a node holds parts of several groups). Use Traffic::group then.
std::optional<GroupShape> group_shape(const ClusterSpec& cluster, const Layout& layout, Axis axis);

/// The bytes of an all-gather's full buffer that load a ring equally. A broadcast sends its whole buffer over every
/// hop, an all-gather (n-1)/n of it.
double ring_bytes(OpKind kind, double bytes, std::int64_t ranks);

class Traffic {
 public:
  Traffic(const ClusterSpec& cluster, const Layout& layout, const Representatives& ranks,
          const std::vector<NodeHealth>& health);

  const std::vector<double>& capacity() const { return capacity_; }
  std::vector<int> cores() const;
  GroupInstance group(Axis axis, std::int64_t index) const;
  /// A group of a sender and a receiver. `ring`: load of one message byte on the pools of those of them that are
  /// simulated.
  GroupInstance channel(std::int64_t from, std::int64_t to) const;
  /// Load per byte of an all-reduce's buffer, on the pools of simulated members.
  PoolLoad all_reduce(const GroupInstance& group, AllReduce algorithm) const;
  /// `bytes[i * n + j]`: from the group's member i to member j. Returns the load on the pools of simulated members.
  /// `rows_of_token` as in Collective: a token with so many rows is sent once to a node, and passed on once to each of
  /// the node's members.
  PoolLoad all_to_all(const GroupInstance& group, const std::vector<double>& bytes,
                      std::int64_t rows_of_token = 0) const;
  /// The load with the amounts on each kind of node multiplied by the kind's factor. Uplinks, which all kinds share,
  /// get the smallest factor.
  PoolLoad by_kind(PoolLoad load, const std::vector<double>& factors) const;
  /// Seconds of a load that has the pools to itself. With `kind`: only uplinks and pools of that kind's nodes count.
  double alone_s(const PoolLoad& load, std::optional<std::size_t> kind = {}) const;

 private:
  enum Port { nvlink_out, nvlink_in, nic_out, nic_in, kPorts };
  void add_uplinks(const std::vector<std::int64_t>& ranks);
  bool whole_uplinks(std::int64_t leaf) const;
  int port(std::int64_t rank, Port which) const;
  int uplink(std::int64_t rank, bool up) const;
  /// Bytes through the ports of a GPU on a node with that many members.
  using Ports = std::function<PortBytes(double members)>;
  PoolLoad spread(const GroupInstance& group, const Ports& ports) const;
  void ring_uplinks(const GroupInstance& group, const Ports& ports) const;
  /// Calls visit(rank, i) for the simulated members, each on node group.on_nodes[i].
  template <class Visit>
  void each_simulated(const GroupInstance& group, const Visit& visit) const;

  const ClusterSpec cluster_;
  Mesh mesh_;
  bool shares_, uplinks_;           ///< each simulated rank has a share of an uplink; there are uplink pools
  std::vector<int> local_;          ///< world rank -> index among the simulated ranks, or -1
  std::vector<int> uplink_;         ///< simulated rank -> its upward pool, followed by the downward one
  std::vector<std::size_t> kinds_;  ///< simulated rank -> kind of its node
  std::vector<double> capacity_;
  mutable PoolSum sum_;  ///< scratch for one load; empty between calls
};

}  // namespace wt
