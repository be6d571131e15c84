// Steps of a small model under every kind of layout, for tests of the replay.
#pragma once
#include "sim/replay/replay.hpp"
#include "tests/support/fake_cost.hpp"

namespace wt::test {

inline Layout layout_of(std::int64_t r, std::int64_t s, std::int64_t e, Recompute recompute = Recompute::none) {
  return {r, s, e, 1, recompute, {}};
}

/// `bytes` as in Collective; it waits for nothing.
inline Op collective_op(const std::string& name, OpKind kind, Lane lane, Axis axis, double bytes) {
  Op op;
  op.name = name, op.kind = kind, op.lane = lane, op.collective = {axis, {bytes, 0}};
  return op;
}

/// All ranks do these ops, in this order, once.
inline ProgramSet same_on_all(std::vector<Op> ops, std::int64_t world) {
  Program program;
  program.layers = program.microbatches = 1;
  for (Op& op : ops) program.nodes.emplace_back(std::move(op));
  return {{program}, std::vector<int>(static_cast<std::size_t>(world), 0)};
}

/// A small model under a layout, with skewed or equal loads.
struct Run {
  ModelSpec model = small_model();
  Layout layout;
  std::int64_t seq = 512;
  std::unique_ptr<RoutingSource> routing;
  ProgramSet set;
  explicit Run(Layout l, bool skewed = true, std::int64_t layers = 3, const Microbatches& n = {2, 1, 1})
      : model(small_model(layers)), layout(std::move(l)) {
    layout.microbatch = n.each;
    std::vector<std::vector<double>> shares;
    for (int layer = 0; layer < 3; ++layer) {
      shares.emplace_back();
      for (int e = 0; e < 16; ++e) shares.back().push_back(skewed ? 1 + (e * 7 + layer * 5) % 11 : 1);
    }
    routing = histogram_routing(model, {n.count, n.each * seq, n.last * seq}, shares, "test");
    set = build_program_set(model, layout,
                            {seq, n.count, Precision::bf16, false, layout.resident_weights() ? 0 : n.last});
  }
  ReplayResult replay(const ClusterSpec& cluster, const OpCost& cost, ReplayOptions options = {}) const {
    return wt::replay(set, layout, model, cluster, cost, *routing, options);
  }
};

inline Layout tensor_layout(std::int64_t tensor, Layout layout) {
  layout.tensor = tensor, layout.sequence_parallel = true;
  return layout;
}

inline Layout stage_layout(std::int64_t stages, Layout layout, Schedule schedule = Schedule::one_f_one_b) {
  layout.pipeline = stages, layout.schedule = schedule;
  layout.reshard_after_forward = layout.reduce_every_microbatch = false;
  return layout;
}

inline Layout ring_layout(Layout layout) {
  layout.context = 2, layout.context_ring = true;
  return layout;
}

inline const std::vector<Layout> kLayouts{layout_of(1, 8, 1),
                                          layout_of(2, 8, 4),
                                          layout_of(1, 16, 8),
                                          layout_of(4, 8, 2),
                                          layout_of(2, 16, 4),
                                          layout_of(8, 4, 4),
                                          layout_of(8, 2, 2),
                                          layout_of(4, 4, 2, Recompute::block),
                                          layout_of(2, 16, 16),
                                          layout_of(1, 32, 4, Recompute::block),
                                          layout_of(2, 8, 4, recompute_from_string("attention+experts")),
                                          layout_of(2, 8, 2, recompute_from_string("experts:first-2+block:range-2-3")),
                                          tensor_layout(2, layout_of(2, 4, 2)),
                                          tensor_layout(2, layout_of(1, 16, 4, Recompute::block)),
                                          tensor_layout(4, layout_of(4, 1, 1)),
                                          tensor_layout(8, layout_of(1, 4, 2)),
                                          ring_layout(layout_of(2, 8, 2)),
                                          stage_layout(3, layout_of(2, 4, 2)),
                                          stage_layout(3, layout_of(8, 1, 1), Schedule::zero_bubble),
                                          stage_layout(3, tensor_layout(2, layout_of(4, 2, 2)))};

}  // namespace wt::test
