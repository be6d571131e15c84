// Which ranks are simulated. Twins, ranks that do the same at the same time, are simulated once. With equal programs,
// equal routing and healthy nodes, all shard groups are twins. Inside a shard group, all blocks of nodes that close the
// expert axis are twins. One such block represents all: max(1, expert x tensor / gpus_per_node) nodes, the same in
// every pipeline stage.
//
// If every expert gets equally many rows and all nodes and uplinks are alike, all ranks of a stage are twins, and one
// of each stage is simulated.
//
// A node that is slower, of another kind, or behind slow uplinks is no twin of the others. Then one of all shard groups
// with the same sequence of nodes is simulated, in full. Groups of healthy nodes run ahead of a group with a slow node,
// and their traffic meets where replicas exchange gradients.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/layout.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

/// Most ranks simulated to keep uplinks exact; a step of so many costs about 0.2 s.
inline constexpr std::int64_t kLargestBlock = 512;

struct Representatives {
  bool folded = false;
  bool uplink_shares = false;
  bool one_a_stage = false;  ///< one rank represents each stage
  /// World ranks, ascending; closed under the expert, tensor and pipeline axes, except with one_a_stage.
  std::vector<std::int64_t> ranks;
};

Representatives every_rank(const Layout& layout);
/// `step`: the step whose routing is compared. Without symmetry, every rank.
Representatives representatives(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster,
                                const RoutingSource& routing, std::int64_t step, const std::vector<NodeHealth>& health);

}  // namespace wt
