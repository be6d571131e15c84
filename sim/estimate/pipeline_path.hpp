// The critical path through all stages of a pipeline, op by op: every stage walks its own program in issue order, each
// op waits for its lane and for what it names, a message for the stage that sends it. A lower bound on the simulated
// step: ops take what they take at least (OpSeconds), nobody shares a link, and computation is slowed where a
// collective surely is in flight: between the op that lets it begin and the one that waits for it.
//
// Against schedule_seconds.hpp, which knows passes alone, it has what keeps and sends weights and gradients, each
// lane's own order, pieces of passes that alternate and backward passes that are split. It costs the building of the
// program and some 10 ns an op.
#pragma once
#include "sim/estimate/layer_seconds.hpp"

namespace wt {

/// `programs`: of all stages with all microbatches of the step. `loads`, by layer, of `rank` on the first stage, which
/// stands for its peers on the others. `layers`: layer_seconds of the layout without its pipeline. GPUs of one kind; 0
/// where the ranks of a stage differ in their programs.
double pipeline_path_s(const ProgramSet& programs, const Layout& layout, const ClusterSpec& cluster, const OpCost& cost,
                       const LayerLoads& loads, const LayerSeconds& layers, std::int64_t rank);

}  // namespace wt
