// A leaf's uplinks against closed forms: what a degraded one slows, by how much, and what it leaves alone.
#include <catch2/catch.hpp>

#include "tests/fixtures/replayed_run.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// Seconds of one collective of B bytes beside a leaf whose uplinks have a share of their rate.
double taken(OpKind kind, Axis axis, const Layout& layout, double B, ClusterSpec cluster,
             std::vector<LeafHealth> leaves) {
  Op op;
  op.name = "one", op.kind = kind, op.lane = lane_of(kind, axis), op.collective = {axis, {B, 0}};
  Program program;
  program.layers = program.microbatches = 1;
  program.nodes.emplace_back(op);
  cluster.degraded_leaves = std::move(leaves);
  FakeCost cost;
  cost.latency_s = 0;
  const ProgramSet set{{program}, std::vector<int>(static_cast<std::size_t>(layout.world()), 0)};
  return replay(set, layout, small_model(), cluster, cost, *balanced_routing(small_model(), 1), {0, false, false, {}})
      .step_s;
}

}  // namespace

TEST_CASE("an all-reduce through a degraded leaf slows by its share, inside the leaf not at all") {
  // Leaves of two nodes with four GPUs each, twice oversubscribed: the ring's one hop out of a leaf fills its uplinks.
  const ClusterSpec cluster = small_cluster(4, 2);
  const double B = 1e9;
  for (double share : {0.9, 0.5, 0.05})
    for (std::int64_t leaf : {0, 1}) {
      const auto all_reduce = [&](const Layout& layout) {
        return taken(OpKind::all_reduce, Axis::shard, layout, B, cluster, {{leaf, share}});
      };
      CHECK(all_reduce(layout_of(1, 16, 1)) == Approx(2 * B * 15 / 16 / (4 * 50e9) / share));
      CHECK(all_reduce(layout_of(2, 8, 1)) == Approx(2 * B * 7 / 8 / (4 * 50e9)));  // either has a leaf of its own
      CHECK(all_reduce(layout_of(4, 4, 1)) == Approx(2 * B * 3 / 4 / 400e9));       // or a node
    }
}

TEST_CASE("uplinks that are not oversubscribed have room until less is left than the ring needs") {
  for (double share : {1.0, 0.7, 0.5, 0.25})  // of two nodes' uplinks, one hop's worth is half
    CHECK(taken(OpKind::all_gather, Axis::shard, layout_of(1, 16, 1), 1e9, small_cluster(4), {{1, share}}) ==
          Approx(1e9 * 15 / 16 / (4 * 50e9) * std::max(1.0, 0.5 / share)));
}

TEST_CASE("an all-to-all slows by the share of its slowest leaf") {
  ClusterSpec cluster = small_cluster(2);
  cluster.nodes_per_leaf = 1;
  const double B = 1e9, healthy = B * 4 / 8 / 50e9;  // what each GPU sends the other node's
  CHECK(taken(OpKind::all_to_all, Axis::shard, layout_of(1, 8, 1), B, cluster, {}) == Approx(healthy));
  CHECK(taken(OpKind::all_to_all, Axis::shard, layout_of(1, 8, 1), B, cluster, {{0, 0.8}, {1, 0.4}}) ==
        Approx(healthy / 0.4));
}
