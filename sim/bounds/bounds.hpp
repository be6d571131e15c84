// Lower bounds on the step time of one rank, for a search that must not simulate everything.
//   bound 0: the sum of the fullest lane, from the program's tree and its repeat counts, with the smallest routing
//     load;
//   bound 1: the critical path of the unrolled program with its own routing load.
// Where communication slows a GPU's computation, both include this slowdown (Occupation in bounds.cpp). For DBRX on
// 3,072 GPUs bound 0 costs about 10 microseconds and bound 1 a millisecond (docs/simulator.md). In both, every
// collective has the cluster to itself and no rank waits for another. So bound 0 <= bound 1 <= simulated, provided that
// times do not fall when rows or bytes grow.
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

/// Rows of one exchange through a rank's fullest port of each kind; 0 = not counted.
struct PortRows {
  double nic = 0, nvlink = 0;
};

/// The smallest routing load of a rank over all layers of a microbatch.
struct RoutingFloor {
  double rows = 0;           ///< received
  double sent_share = 0;     ///< share of its sent rows that leave the rank
  double returned_rows = 0;  ///< received from other ranks, and later sent back
  double sent_rows = 0;      ///< rows of the source that sends most, including those to itself; only counted with the
                             ///< ports
  PortRows dispatched = {}, collected = {};  ///< set by layer_loads alone
};

/// The smallest of each number.
RoutingFloor lowest(std::span<const RoutingFloor> floors);
RoutingFloor floor_of(const RoutingTable& table, const Layout& layout, int microbatch, int layer, std::int64_t rank);
/// The floors of `rank`, by microbatch. On shared cores: the smallest over all ranks. All 0 if the expert axis is 1.
std::vector<RoutingFloor> routing_floors(const Program& program, const Layout& layout, const ClusterSpec& cluster,
                                         const RoutingSource& routing, std::int64_t step, std::int64_t rank);

double bound0(const Program& program, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
              const std::vector<RoutingFloor>& floors, std::int64_t rank = 0);
double bound1(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
              const RoutingSource& routing, std::int64_t step = 0, std::int64_t rank = 0);

}  // namespace wt
