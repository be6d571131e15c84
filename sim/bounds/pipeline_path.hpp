// The critical path through all stages of a pipeline, op by op. Every stage walks its program in issue order. An op
// waits for its lane, its communicator and the ops it names; a received message waits for its sender. A lower bound on
// the simulated step: ops have their least time (OpSeconds) and share no link. Computation is slowed only while a
// collective is certainly in flight: between the op that lets it begin and the op that waits for it. A layout without a
// pipeline has one stage.
//
// Compared with schedule_seconds.hpp, which knows only passes, it includes weights and gradients, the order within each
// lane, interleaved passes and split backward passes. It costs the building of the program and some 10 ns an op.
#pragma once
#include "sim/bounds/layer_seconds.hpp"

namespace wt {

/// `programs`: one for each stage, with all microbatches of the step, which are equal. `loads`, by layer: of `rank`, on
/// the first stage; its peers on other stages have the same loads. `layers`: layer_seconds of the layout without its
/// pipeline; unused if the layout has no pipeline. All GPUs are of one kind.
double pipeline_path_s(const std::vector<Program>& programs, const Layout& layout, const ClusterSpec& cluster,
                       const OpCost& cost, const LayerLoads& loads, const LayerSeconds& layers, std::int64_t rank);

}  // namespace wt
