// Which ranks are simulated. Ranks that do the same at the same time are represented once: with equal programs, equal
// routing and healthy nodes, all shard groups are twins, and inside a shard group all blocks of nodes that close the
// expert axis are twins. The representative set is one such block: max(1, expert x tensor / gpus_per_node) nodes,
// of every pipeline stage the same.
//
// Where every expert gets as many rows and no node or uplink differs, all ranks of a stage are twins, and one of each
// stage is simulated.
//
// A node of another kind than the others, slower, or behind slow uplinks is no twin of theirs. Then of the shard groups
// with the same sequence of nodes one is simulated, in full: groups of healthy nodes run ahead of one with a slow node,
// and their traffic meets it where replicas exchange gradients.
#pragma once
#include <cstdint>
#include <vector>

#include "configs/files/cluster.hpp"
#include "configs/files/layout.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"

namespace wt {

inline constexpr std::int64_t kLargestBlock = 512;  ///< ranks simulated to keep uplinks exact; a step costs about 0.2 s

struct Representatives {
  bool folded = false;
  bool uplink_shares = false;
  bool one_a_stage = false;  ///< all ranks of a stage do the same
  std::vector<std::int64_t>
      ranks;  ///< world ranks, ascending; unless one a stage, closed under the expert, tensor and pipeline axes
};

Representatives every_rank(const Layout& layout);
/// `step` says which routing is compared. Falls back to every rank where there is no symmetry.
Representatives representatives(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster,
                                const RoutingSource& routing, std::int64_t step, const std::vector<NodeHealth>& health);

}  // namespace wt
