// Small pipelines, their programs and their simulated steps.
#pragma once
#include <algorithm>

#include "sim/replay/replay.hpp"
#include "tests/support/fake_cost.hpp"

namespace wt::test {

inline constexpr std::int64_t kSeq = 128;

inline Layout stages(std::int64_t pipeline, std::int64_t chunks = 1, Schedule schedule = Schedule::one_f_one_b,
                     Layout layout = {}) {
  layout.pipeline = pipeline, layout.virtual_stages = chunks, layout.schedule = schedule;
  layout.reshard_after_forward = layout.reduce_every_microbatch = false;
  return layout;
}

inline ModelSpec dense_model(std::int64_t layers) {
  ModelSpec m = small_model(layers);
  m.experts = m.top_k = 0;
  return m;
}

inline ProgramSet programs(const ModelSpec& model, const Layout& layout, std::int64_t microbatches) {
  return build_program_set(model, layout, {kSeq, microbatches, Precision::bf16, false});
}

/// A layer takes a second forward and two backward, one each for inputs and weights; everything else is free.
struct LayerCost : FakeCost {
  LayerCost() { latency_s = 0; }
  Price segment(const Op& op, const BoundRows&, Clock) const override {
    const bool split = op.name == "weights.bwd" ||
                       (op.name == "attn.bwd" && std::none_of(op.work.begin(), op.work.end(), [](const WorkItem& w) {
                          return w.kernel == Kernel::gemm && w.pass == Pass::backward;
                        }));
    const double s = op.name == "attn.fwd" || split ? 1 : op.name == "attn.bwd" ? 2 : 0;
    return {s, s, s, Lookup::exact, Evidence::measured};
  }
};

inline ClusterSpec free_network(std::int64_t world) {
  ClusterSpec c = small_cluster((world + 3) / 4);
  c.gpus_per_node = std::min<std::int64_t>(4, world), c.nvswitch_Bps = c.nic_Bps = 1e30;
  return c;
}

inline double step_of(const ModelSpec& model, const Layout& layout, std::int64_t microbatches, const OpCost& cost,
                      ClusterSpec cluster) {
  cluster.nodes = (layout.world() + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
  return replay(programs(model, layout, microbatches), layout, model, cluster, cost, *balanced_routing(model, kSeq),
                {0, true, false, {}})
      .step_s;
}

/// Seconds of a step in which only layers take time, by LayerCost.
inline double in_layers(std::int64_t layers, const Layout& layout, std::int64_t microbatches) {
  return step_of(dense_model(layers), layout, microbatches, LayerCost{}, free_network(layout.world()));
}

}  // namespace wt::test
