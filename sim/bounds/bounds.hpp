// Lower bounds on the step time of one rank, for a search that must not simulate everything.
//   bound 0: the fullest lane's sum, from the program's tree and its repeat counts, with the smallest routing load;
//   bound 1: the critical path of the unrolled program with its own routing load.
// Where communication slows a GPU's computation, both are also no less than its computation, what it surely stands
// still for, and the slowdown times what is surely in flight beyond that. For DBRX on 3,072 GPUs bound 0 costs about 10
// microseconds and bound 1 a millisecond (docs/simulator.md). Both let every collective have the cluster to itself and
// never wait for another rank, so bound 0 <= bound 1 <= simulated, provided that prices do not fall when rows or bytes
// grow.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "configs/files/cluster.hpp"
#include "sim/cost/ops/op_cost.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/routing/routing.hpp"
#include "sim/replay/routing_table.hpp"

namespace wt {

/// Rows through a rank's fullest port of each kind in one exchange; 0 = not asked.
struct PortRows {
  double nic = 0, nvlink = 0;
};

/// The smallest routing load of a rank over all layers of a microbatch.
struct RoutingFloor {
  double rows = 0;                           ///< received
  double sent_share = 0;                     ///< of the rows it sends, share that leaves the rank
  double returned_rows = 0;                  ///< received from other ranks, and sent back to them
  double sent_rows = 0;                      ///< by the source that sends most, its own among them; with the ports
  PortRows dispatched = {}, collected = {};  ///< of layer_loads
};

/// The smallest of each of these numbers.
RoutingFloor lowest(std::span<const RoutingFloor> floors);
RoutingFloor floor_of(const RoutingTable& table, const Layout& layout, int microbatch, int layer, std::int64_t rank);
/// By microbatch, of `rank`; on shared cores the smallest over all ranks. All zero where the expert axis is 1.
std::vector<RoutingFloor> routing_floors(const Program& program, const Layout& layout, const ClusterSpec& cluster,
                                         const RoutingSource& routing, std::int64_t step, std::int64_t rank);

double bound0(const Program& program, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
              const std::vector<RoutingFloor>& floors, std::int64_t rank = 0);
double bound1(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
              const RoutingSource& routing, std::int64_t step = 0, std::int64_t rank = 0);

}  // namespace wt
