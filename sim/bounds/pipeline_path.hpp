// The critical path through all stages of a pipeline, op by op: every stage walks its own program in issue order, each
// op waits for its lane, its communicator and what it names, a message for the stage that sends it. A lower bound on
// the simulated step: ops take what they take at least (OpSeconds), nobody shares a link, and computation is slowed
// where a collective surely is in flight: between the op that lets it begin and the one that waits for it. A layout
// without a pipeline has one stage.
//
// Against schedule_seconds.hpp, which knows passes alone, it has what keeps and sends weights and gradients, each
// lane's own order, pieces of passes that alternate and backward passes that are split. It costs the building of the
// program and some 10 ns an op.
#pragma once
#include "sim/bounds/layer_seconds.hpp"

namespace wt {

/// `programs`: one of each stage, with all microbatches of the step, which are alike. `loads`, by layer, of `rank` on
/// the first stage, which stands for its peers on the others. `layers`: layer_seconds of the layout without its
/// pipeline, of which a layout that has none makes no use: weights and gradients divide what its hosts launch. GPUs of
/// one kind.
double pipeline_path_s(const std::vector<Program>& programs, const Layout& layout, const ClusterSpec& cluster,
                       const OpCost& cost, const LayerLoads& loads, const LayerSeconds& layers, std::int64_t rank);

}  // namespace wt
