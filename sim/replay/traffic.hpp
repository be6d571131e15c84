// Pools of a cluster, and what a collective puts on them. Per GPU: NVLink out and in, its share of the node's NICs out
// and in; where leaf switches are oversubscribed or degraded also one uplink pool, up and down, for each (leaf, rail),
// rail = the GPU's place in its node. A group with one member a node thus gets one NIC and not eight, and of two groups
// on all rails each gets its half, as on rail-aligned fabrics.
//
// Volumes are those of NCCL's algorithms: a ring moves (n-1)/n of the full buffer across every hop, and a node of k
// members spreads the one hop that leaves it over the members' NICs (rings are rotated) and the k-1 others over NVLink.
// An all-reduce puts on them what its algorithm does (all_reduce_ports); what leaves nodes takes the way of a ring
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
#include "sim/replay/pool_sum.hpp"
#include "sim/replay/representatives.hpp"

namespace wt {

struct NodeMembers {
  std::int64_t node = 0, count = 0;
};

struct GroupInstance {
  Axis axis = Axis::world;
  std::int64_t index = 0;
  std::int64_t size = 1, nodes = 1;
  std::vector<std::int64_t> members;  ///< world ranks, ascending, simulated or not
  std::vector<NodeMembers> on_nodes;  ///< ascending; of a group that collectives run over, on a cluster of nodes
  PoolLoad ring;  ///< bytes on the pools of simulated members for each byte of an all-gather's full buffer
};

/// How a rank's group of an axis lies on the nodes, without listing its members.
struct GroupShape {
  std::int64_t size = 1, nodes = 1;
  double gather_s_per_byte =
      0;  ///< of an all-gather's full buffer, with the pools to itself and no uplinks: Traffic::alone_s
  std::array<double, kAllReduces.size()> reduce_s_per_byte{};  ///< the same of an all-reduce's buffer, by algorithm
};
/// Nothing where nodes and groups do not nest (a node holds parts of several groups): ask Traffic::group then.
std::optional<GroupShape> group_shape(const ClusterSpec& cluster, const Layout& layout, Axis axis);

/// Bytes of an all-gather's full buffer that load a ring as much as these do: a broadcast passes all of its buffer over
/// every hop, (n-1)/n of which an all-gather does.
double ring_bytes(OpKind kind, double bytes, std::int64_t ranks);

class Traffic {
 public:
  Traffic(const ClusterSpec& cluster, const Layout& layout, const Representatives& ranks,
          const std::vector<NodeHealth>& health);

  const std::vector<double>& capacity() const { return capacity_; }
  std::vector<int> cores() const;
  GroupInstance group(Axis axis, std::int64_t index) const;
  /// Two ranks, one of which sends to the other: `ring` is what each byte of a message puts on the simulated ones'
  /// pools.
  GroupInstance channel(std::int64_t from, std::int64_t to) const;
  /// Bytes on the pools of simulated members for each byte of an all-reduce's buffer.
  PoolLoad all_reduce(const GroupInstance& group, AllReduce algorithm) const;
  /// bytes[i * n + j]: from the group's member i to member j, on the pools of those that are simulated. `rows_of_token`
  /// as in Collective: bytes of rows of which a token has so many, drawn by the members' shares, cross to a node once
  /// and pass on to each of its members once.
  PoolLoad all_to_all(const GroupInstance& group, const std::vector<double>& bytes,
                      std::int64_t rows_of_token = 0) const;
  /// The load with the amounts on each kind of node times a factor of its own, on uplinks, which all share, the least.
  PoolLoad by_kind(PoolLoad load, const std::vector<double>& factors) const;
  /// Seconds of a load that has the pools to itself; with a kind, on uplinks and that kind's nodes alone.
  double alone_s(const PoolLoad& load, std::optional<std::size_t> kind = {}) const;

 private:
  enum Port { nvlink_out, nvlink_in, nic_out, nic_in, kPorts };
  void add_uplinks(const std::vector<std::int64_t>& ranks);
  bool whole_uplinks(std::int64_t leaf) const;
  int port(std::int64_t rank, Port which) const;
  int uplink(std::int64_t rank, bool up) const;
  /// Of a GPU on a node with that many members.
  using Ports = std::function<PortBytes(double members)>;
  PoolLoad spread(const GroupInstance& group, const Ports& ports) const;
  void ring_uplinks(const GroupInstance& group, const Ports& ports) const;
  /// visit(rank, i) for the simulated members, each on node group.on_nodes[i].
  template <class Visit>
  void each_simulated(const GroupInstance& group, const Visit& visit) const;

  const ClusterSpec cluster_;
  Mesh mesh_;
  bool shares_, uplinks_;           ///< of the uplinks a share for each simulated rank; there are uplink pools
  std::vector<int> local_;          ///< world rank -> index among the simulated, -1
  std::vector<int> uplink_;         ///< simulated rank -> its pool upwards; the one downwards follows
  std::vector<std::size_t> kinds_;  ///< simulated rank -> its node's
  std::vector<double> capacity_;
  mutable PoolSum sum_;  ///< of the load being made; empty between two
};

}  // namespace wt
