// Least time of one op on a rank: the op runs alone, and every link has its full rate.
#pragma once
#include <array>
#include <optional>
#include <unordered_map>

#include "sim/bounds/bounds.hpp"
#include "sim/replay/traffic.hpp"

namespace wt {

/// The rank's expert group represents the cluster. Uplinks are left out, because a ring that runs alone has the uplinks
/// of a whole leaf.
Representatives neighbours(const Layout& layout, const ClusterSpec& cluster, std::int64_t rank);
ClusterSpec without_uplinks(ClusterSpec cluster);

/// Time of a message to the rank `distance` ranks away, inside a node or across nodes: whichever is possible and
/// faster.
double least_message_s(const ClusterSpec& cluster, const OpCost& cost, double bytes, std::int64_t distance);

class OpSeconds {
 public:
  struct Of {
    double seconds = 0;
    double cpu_s = 0;  ///< of all ranks of the stage, on shared cores
  };
  /// `cluster` has nodes of one kind, the rank's. `mixed` is the cluster with all kinds, or nullptr. All arguments must
  /// outlive this.
  OpSeconds(const Layout& layout, const ClusterSpec& cluster, const OpCost& cost, std::int64_t rank,
            const ClusterSpec* mixed);
  /// 0 for ops of the host. Results that routing does not change are cached by the op's address, so programs must
  /// outlive this.
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
