// What each layer of a model takes a rank at least, on its compute lane: the same for all layouts whose ranks compute
// the same, however they keep and send weights and gradients.
#pragma once
#include <vector>

#include "sim/bounds/bounds.hpp"
#include "sim/cost/ops/op_cost.hpp"

namespace wt {

/// Of one pass through a layer.
struct PassSeconds {
  double compute = 0;   ///< of the compute lane: computation, what a slow host adds to it, and collectives of a tensor
                        ///< group, which stand in its way
  double exchange = 0;  ///< of rows that travel to experts and back
  double path = 0;      ///< until the compute lane is through, where it waits for those rows
  double exposed = 0;   ///< of it, waiting for rows
  double again = 0;     ///< of it, what backward computes again: that needs no gradient
};

/// Seconds of one microbatch.
struct LayerSeconds {
  std::vector<PassSeconds> forward, backward;  ///< by layer; backward with what is computed again
  double embed = 0;                            ///< forward
  double embed_backward = 0;
  double head = 0;  ///< output projection and loss, both ways
};

/// Routing by layer; empty where rows stay.
struct LayerLoads {
  /// Of so many times as many rows.
  LayerLoads times(double factor) const;

  std::vector<RoutingFloor> own;      ///< of a rank: what it computes
  std::vector<RoutingFloor> fullest;  ///< of each layer's fullest rank, for which all ranks of its group wait
  bool sent = false;                  ///< count what exchanges take and hosts add, which depend on the dispatcher
  bool kernels_alone = false;         ///< leave out what a tensor group sends on the compute lane, too
};

/// Of the first microbatch. On GPUs with what crosses the ranks' ports, as Traffic::all_to_all counts it.
LayerLoads layer_loads(const ModelSpec& model, const Layout& layout, const ClusterSpec& cluster,
                       const RoutingSource& routing, std::int64_t rank);

/// What ranks compute alone: nothing is sent, and nobody waits for others.
LayerLoads own_loads(const ModelSpec& model, const Layout& layout, const RoutingSource& routing, std::int64_t rank);
/// The kernels of every rank of the first group of experts alone; of ranks with the same rows once.
std::vector<LayerLoads> group_loads(const ModelSpec& model, const Layout& layout, const RoutingSource& routing);

/// Of `program`'s first microbatch, a program without a pipeline.
LayerSeconds layer_seconds(const Program& program, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
                           const LayerLoads& loads, std::int64_t rank);

/// What a chunk of neighbouring layers takes, each way, with embedding and head at the ends.
struct ChunkSeconds {
  PassSeconds forward, backward;
};
/// `chunk_layers`: Layout::layers_of_chunks; modules of multi-token prediction come on top.
std::vector<ChunkSeconds> chunk_seconds(const LayerSeconds& seconds, const Layout& layout,
                                        const std::vector<std::int64_t>& chunk_layers);

/// A pipeline's step takes at least so long: each stage's own work, and the passes of one microbatch through the stages
/// before it that must come first and last. Without a pipeline, the work. Passes whose rows travel beside another
/// microbatch (Layout::exchange_overlap) need the longer of computation and exchanges.
double least_step_s(const LayerSeconds& seconds, const Layout& layout, const std::vector<std::int64_t>& chunk_layers,
                    std::int64_t microbatches);

}  // namespace wt
