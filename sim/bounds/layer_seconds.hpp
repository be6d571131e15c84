// Least compute-lane time of each layer of a model on a rank. It is the same for all layouts whose ranks compute the
// same, however they keep and send weights and gradients.
#pragma once
#include <vector>

#include "sim/bounds/bounds.hpp"
#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// Seconds of one pass through a layer.
struct PassSeconds {
  /// Compute lane: computation, delays by a slow host, and collectives of a tensor group, which block it.
  double compute = 0;
  double exchange = 0;  ///< rows that travel to experts and back
  double path = 0;      ///< until the compute lane is done, with its waits for those rows
  double exposed = 0;   ///< part of path: waiting for rows
  double again = 0;     ///< part of path: recompute, which needs no gradient
};

/// Seconds of one microbatch.
struct LayerSeconds {
  std::vector<PassSeconds> forward, backward;  ///< by layer; backward includes recompute
  double embed = 0;                            ///< forward
  double embed_backward = 0;
  double head = 0;  ///< output projection and loss, forward and backward
};

/// Routing by layer; empty if no rows leave their rank.
struct LayerLoads {
  /// The loads for `factor` times as many rows.
  LayerLoads times(double factor) const;

  std::vector<RoutingFloor> own;      ///< loads of the rank, for what it computes
  std::vector<RoutingFloor> fullest;  ///< loads of each layer's fullest rank, for which its whole group waits
  bool sent = false;                  ///< include exchanges and launch delays, which depend on the dispatcher
  bool kernels_alone = false;         ///< leave out a tensor group's collectives on the compute lane, too
};

/// Loads of the first microbatch. On GPUs they include the rows that cross the ranks' ports, as Traffic::all_to_all
/// counts them.
LayerLoads layer_loads(const ModelSpec& model, const Layout& layout, const ClusterSpec& cluster,
                       const RoutingSource& routing, std::int64_t rank);

/// A rank's own computation, without exchanges and without waits for others.
LayerLoads own_loads(const ModelSpec& model, const Layout& layout, const RoutingSource& routing, std::int64_t rank);
/// The kernels of every rank of the first expert group. Ranks with the same rows are listed once.
std::vector<LayerLoads> group_loads(const ModelSpec& model, const Layout& layout, const RoutingSource& routing);

/// Seconds of the first microbatch of `program`, which has no pipeline.
LayerSeconds layer_seconds(const Program& program, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
                           const LayerLoads& loads, std::int64_t rank);

/// Time of a chunk of consecutive layers in each direction, with embedding and head at the ends.
struct ChunkSeconds {
  PassSeconds forward, backward;
};
/// `chunk_layers`: Layout::layers_of_chunks. Modules of multi-token prediction are additional.
std::vector<ChunkSeconds> chunk_seconds(const LayerSeconds& seconds, const Layout& layout,
                                        const std::vector<std::int64_t>& chunk_layers);

/// Lower bound of a pipeline's step: each stage's own work, plus the passes of one microbatch through the earlier
/// stages that must come first and last. Without a pipeline: the work. If a pass overlaps its exchanges with another
/// microbatch (Layout::exchange_overlap), it needs the longer of computation and exchanges.
double least_step_s(const LayerSeconds& seconds, const Layout& layout, const std::vector<std::int64_t>& chunk_layers,
                    std::int64_t microbatches);

}  // namespace wt
