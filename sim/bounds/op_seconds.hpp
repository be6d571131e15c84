// Seconds that one op takes at least on a rank: alone, with the cluster to itself and every link at its full rate.
#pragma once
#include <array>
#include <optional>
#include <unordered_map>

#include "sim/bounds/bounds.hpp"
#include "sim/replay/traffic.hpp"

namespace wt {

/// The rank's expert group stands for the cluster. Uplinks are left out: alone, a ring has a whole leaf's.
Representatives neighbours(const Layout& layout, const ClusterSpec& cluster, std::int64_t rank);
ClusterSpec without_uplinks(ClusterSpec cluster);

/// Of a message to the rank `distance` ranks away: inside a node or across nodes, whichever is faster and possible.
double least_message_s(const ClusterSpec& cluster, const OpCost& cost, double bytes, std::int64_t distance);

class OpSeconds {
 public:
  struct Of {
    double seconds = 0;
    double cpu_s = 0;  ///< of all ranks of the stage, on shared cores
  };
  /// `cluster` has nodes of one kind, the rank's; `mixed`, where there is one, is the cluster with all kinds. Referred
  /// objects must outlive it.
  OpSeconds(const Layout& layout, const ClusterSpec& cluster, const OpCost& cost, std::int64_t rank,
            const ClusterSpec* mixed);
  /// Nothing for ops of the host. What routing does not change is remembered by the op's address: programs must outlive
  /// this.
  Of of(const Op& op, const RoutingFloor& floor);

 private:
  Of seconds_of(const Op& op, const RoutingFloor& floor);
  Of collective(const Op& op, const RoutingFloor& floor);
  double reduce_s_per_byte(const GroupShape& group, AllReduce algorithm) const;
  GroupShape shape(Axis axis) const;

  const ClusterSpec& cluster_;
  const ClusterSpec* mixed_;
  const OpCost& cost_;
  const Layout& layout_;
  const double crowding_;
  Mesh mesh_;
  std::int64_t rank_;
  std::array<std::optional<GroupShape>, kAxes> groups_;
  std::unordered_map<const Op*, Of> known_;
};

}  // namespace wt
