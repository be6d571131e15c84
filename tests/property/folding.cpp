// Twins simulated once give the step that all ranks give, each for itself.
#include <catch2/catch.hpp>

#include "tests/fixtures/replayed_run.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("folded equals unfolded") {
  FakeCost cost;
  cost.slowdown = GENERATE(0.0, 0.3);
  for (const Layout& layout : kLayouts)
    for (bool skewed : {false, true}) {
      const Run run(layout, skewed);
      const ClusterSpec cluster = small_cluster(layout.world() / 4);
      const auto folded = run.replay(cluster, cost);
      const auto all = run.replay(cluster, cost, {0, false, true, {}});
      INFO(layout.name());
      CHECK(all.simulated_ranks == layout.world());
      CHECK(folded.folded);
      const std::int64_t block = skewed ? std::max<std::int64_t>(4, layout.expert * layout.tensor) : 1;
      CHECK(folded.simulated_ranks == block * layout.pipeline);
      CHECK(folded.step_s == Approx(all.step_s).epsilon(1e-6));
      CHECK(folded.exposed_s == Approx(all.exposed_s).epsilon(1e-6));
    }
}

TEST_CASE("folded equals unfolded behind oversubscribed uplinks, up to 64 nodes") {
  for (double oversubscription : {2.0, 8.0})
    for (std::int64_t leaf : {2, 4, 8})
      for (const Layout& layout :
           {layout_of(8, 4, 1), layout_of(8, 8, 4), layout_of(4, 32, 8), layout_of(16, 16, 8), layout_of(8, 12, 4),
            tensor_layout(4, layout_of(8, 4, 2)), stage_layout(3, layout_of(16, 2, 2))}) {
        const Run run(layout);
        ClusterSpec cluster = small_cluster(layout.world() / 4, oversubscription);
        cluster.nodes_per_leaf = leaf;
        const auto folded = run.replay(cluster, FakeCost{}, {0, true, false, {}});
        const auto all = run.replay(cluster, FakeCost{}, {0, false, false, {}});
        INFO(layout.name() << " leaf " << leaf);
        CHECK(!folded.uplink_shares);
        CHECK(folded.step_s == Approx(all.step_s).epsilon(1e-6));
        CHECK(folded.simulated_ranks <= all.simulated_ranks);
        CHECK(folded.step_s >=
              run.replay(small_cluster(layout.world() / 4), FakeCost{}, {0, true, false, {}}).step_s * (1 - 1e-9));
      }
}

TEST_CASE("beyond the largest block, shares of the uplinks stand for them within a few per cent") {
  const Run run(layout_of(10, 64, 4));
  ClusterSpec cluster = small_cluster(160, 3);
  cluster.nodes_per_leaf = 160;
  CHECK(!run.replay(small_cluster(160), FakeCost{}).uplink_shares);
  CHECK(run.replay(cluster, FakeCost{}).uplink_shares);
  cluster.nodes_per_leaf = 12;
  const auto shares = run.replay(cluster, FakeCost{}, {0, true, false, {}});
  const auto all = run.replay(cluster, FakeCost{}, {0, false, false, {}});
  CHECK(shares.uplink_shares);
  CHECK(shares.simulated_ranks == 4);
  CHECK(shares.step_s == Approx(all.step_s).epsilon(0.1));
}

TEST_CASE("a slow node slows the step, folded as unfolded") {
  const Run run(layout_of(4, 8, 4));
  const std::vector<NodeHealth> slow{{3, 0.5, 0.25}};
  const auto folded = run.replay(small_cluster(8), FakeCost{}, {0, true, true, slow});
  const auto all = run.replay(small_cluster(8), FakeCost{}, {0, false, true, slow});
  CHECK(folded.simulated_ranks == 16);  // the slow replica and one of the others
  CHECK(folded.step_s == Approx(all.step_s).epsilon(1e-6));
  const auto behind_uplinks = run.replay(small_cluster(8, 4), FakeCost{}, {0, true, true, slow});
  CHECK(behind_uplinks.step_s ==
        Approx(run.replay(small_cluster(8, 4), FakeCost{}, {0, false, true, slow}).step_s).epsilon(1e-6));
  CHECK(folded.step_s > 1.3 * run.replay(small_cluster(8), FakeCost{}).step_s);
  const Run staged(stage_layout(3, layout_of(4, 8, 4)));  // the node is in the first of three stages
  const auto some = staged.replay(small_cluster(24), FakeCost{}, {0, true, false, slow});
  CHECK(some.simulated_ranks == 3 * 16);
  CHECK(some.step_s ==
        Approx(staged.replay(small_cluster(24), FakeCost{}, {0, false, false, slow}).step_s).epsilon(1e-6));
  CHECK(some.step_s > staged.replay(small_cluster(24), FakeCost{}).step_s);
}

TEST_CASE("what a cluster file says of a node's health is honoured, part by part") {
  const Run run(layout_of(4, 8, 4));
  const auto step_s = [&](const NodeHealth& health, bool fold = true) {
    ClusterSpec cluster = small_cluster(8, 4);
    cluster.degraded = {health};
    return run.replay(cluster, FakeCost{}, {0, fold, false, {}}).step_s;
  };
  const double healthy = step_s({3});
  CHECK(healthy == Approx(run.replay(small_cluster(8, 4), FakeCost{}).step_s).epsilon(1e-6));
  for (const NodeHealth& health : {NodeHealth{3, 0.25, 1, 1}, NodeHealth{3, 1, 0.25, 1}, NodeHealth{3, 1, 1, 0.05}}) {
    CHECK(step_s(health) > 1.01 * healthy);
    CHECK(step_s(health) == Approx(step_s(health, false)).epsilon(1e-6));
  }
}

TEST_CASE("a leaf with slow uplinks slows what passes them, folded as unfolded") {
  for (double oversubscription : {1.0, 2.0})
    for (const Layout& layout : {layout_of(8, 4, 1), layout_of(4, 16, 4), layout_of(16, 8, 8),
                                 tensor_layout(4, layout_of(8, 4, 2)), stage_layout(3, layout_of(16, 2, 2))})
      for (std::int64_t leaf : {0, 3}) {
        const Run run(layout);
        ClusterSpec cluster = small_cluster(layout.world() / 4, oversubscription);
        const double healthy = run.replay(cluster, FakeCost{}).step_s;
        cluster.degraded_leaves = {{leaf, 0.1}};
        const auto folded = run.replay(cluster, FakeCost{}, {0, true, false, {}});
        const auto all = run.replay(cluster, FakeCost{}, {0, false, false, {}});
        INFO(layout.name() << " leaf " << leaf);
        CHECK(!folded.uplink_shares);
        CHECK(folded.simulated_ranks <= all.simulated_ranks);
        CHECK(folded.step_s == Approx(all.step_s).epsilon(1e-6));
        CHECK(folded.step_s > 1.01 * healthy);
        cluster.degraded_leaves = {{leaf, 1}};
        CHECK(run.replay(cluster, FakeCost{}, {0, false, false, {}}).step_s == Approx(healthy).epsilon(1e-6));
        cluster.nodes += 2, cluster.degraded_leaves = {{layout.world() / 8, 0.1}};  // not one of the job's
        CHECK(run.replay(cluster, FakeCost{}, {0, true, false, {}}).step_s == Approx(healthy).epsilon(1e-6));
      }
}

TEST_CASE("beyond the largest block, a slow leaf's shares stand for its uplinks") {
  const Run run(layout_of(10, 64, 4));
  ClusterSpec cluster = small_cluster(160);
  cluster.nodes_per_leaf = 12;
  const double healthy = run.replay(cluster, FakeCost{}).step_s;
  cluster.degraded_leaves = {{5, 0.02}};
  const auto shares = run.replay(cluster, FakeCost{}, {0, true, false, {}});
  const auto all = run.replay(cluster, FakeCost{}, {0, false, false, {}});
  CHECK(shares.uplink_shares);
  CHECK(shares.simulated_ranks < all.simulated_ranks);
  CHECK(shares.step_s > 1.1 * healthy);
  CHECK(shares.step_s == Approx(all.step_s).epsilon(0.1));
}

TEST_CASE("one slow node among 64 of eight GPUs behind oversubscribed uplinks: folded equals unfolded") {
  const Run run(layout_of(16, 32, 8), true, 2);
  ClusterSpec cluster = small_cluster(64, 3);
  cluster.gpus_per_node = cluster.nic_count = 8, cluster.nodes_per_leaf = 8;
  cluster.degraded = {{13, 0.7, 0.5}};
  const auto folded = run.replay(cluster, FakeCost{}, {0, true, false, {}}),
             all = run.replay(cluster, FakeCost{}, {0, false, false, {}});
  CHECK(folded.simulated_ranks == 128);
  CHECK(all.simulated_ranks == 512);
  CHECK(folded.step_s == Approx(all.step_s).epsilon(1e-6));
}

TEST_CASE("a smaller last microbatch costs what it has, folded as unfolded") {
  for (const Layout& layout : kLayouts) {
    if (layout.resident_weights()) continue;  // refused
    INFO(layout.name());
    const ClusterSpec cluster = small_cluster(layout.world() / 4);
    const auto step = [&](const Microbatches& sequences, bool fold = true) {
      return Run(layout, true, 3, sequences).replay(cluster, FakeCost{}, {0, fold, false, {}}).step_s;
    };
    const double uneven = step({2, 4, 1});
    CHECK(uneven > step({1, 4, 4}));
    CHECK(uneven < step({2, 4, 4}));
    CHECK(uneven == Approx(step({2, 4, 1}, false)).epsilon(1e-6));
  }
}
