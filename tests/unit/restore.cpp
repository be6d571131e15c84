// What a checkpoint's restore broadcasts: bytes, order, and the time of it on clusters, against closed forms.
#include "sim/program/compose/restore.hpp"

#include <catch2/catch.hpp>

#include "sim/bounds/bounds.hpp"
#include "sim/replay/replay.hpp"
#include "tests/fixtures/fake_cost.hpp"

using namespace wt;
using namespace wt::test;

namespace {

Layout hsdp(std::int64_t replicate, std::int64_t shard, std::int64_t expert = 1) {
  Layout layout;
  layout.replicate = replicate, layout.shard = shard, layout.expert = expert;
  return layout;
}

double taken(const Layout& layout, const ClusterSpec& cluster, const OpCost& cost, bool fold = true) {
  return replay(restore_programs(small_model(), layout, 12), layout, small_model(), cluster, cost,
                *balanced_routing(small_model(), 1), {0, fold, false, {}})
      .step_s;
}

}  // namespace

TEST_CASE("a restore broadcasts each rank's state, three tensors a group, to those that keep copies") {
  const ModelSpec model = small_model();
  Layout wide = hsdp(4, 4);
  wide.optimizer_shard = 2;  // two replicas keep a half each, two more the same
  for (const Layout& layout : {hsdp(2, 4), hsdp(3, 4, 2), wide}) {
    const ProgramSet set = restore_programs(model, layout, 12);
    double bytes = 0;
    std::vector<std::string> order;
    for (const OpInstance& instance : unroll(set.programs[0])) {
      const Op& op = *instance.op;
      CHECK(op.kind == OpKind::broadcast);
      CHECK(op.action == Action::restore);
      CHECK(op.collective.axis == state_copies_axis(layout));
      bytes += op.collective.bytes.fixed;
      order.push_back(instance.id());
    }
    CHECK(order.size() == static_cast<std::size_t>(3 * (2 + 2 * model.layers)));
    CHECK(order.front() == "embedding.restore.master");
    CHECK(order[4] == "L0.dense.restore.exp_avg");
    CHECK(order.back() == "head.restore.exp_avg_sq");
    const double ranks = static_cast<double>(layout.shard * layout.optimizer_shard);
    CHECK(bytes == Approx(12.0 * static_cast<double>(model.total_parameters()) / ranks).epsilon(1e-3));  // and padding
  }
}

TEST_CASE("nothing is broadcast where nobody keeps a copy; each stage of a pipeline has its own layers") {
  CHECK(unroll(restore_programs(small_model(), hsdp(1, 8), 12).programs[0]).empty());
  CHECK(taken(hsdp(1, 8), small_cluster(2), FakeCost{}) == 0);
  Layout stages = hsdp(2, 2);
  stages.pipeline = 3;
  stages.reshard_after_forward = stages.reduce_every_microbatch = false;
  const ModelSpec model = small_model(6);
  const ProgramSet set = restore_programs(model, stages, 12);
  REQUIRE(set.programs.size() == 3);
  double bytes = 0;
  for (const Program& program : set.programs)
    for (const OpInstance& op : unroll(program)) bytes += op.op->collective.bytes.fixed;
  CHECK(bytes == Approx(12.0 * static_cast<double>(model.total_parameters()) / 2).epsilon(1e-3));  // over 2 shards
  CHECK(set.class_of_rank == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
}

TEST_CASE("a restore takes its bytes over one NIC or one GPU's NVLink, and a latency each call") {
  FakeCost cost;
  const double parameters = static_cast<double>(small_model().total_parameters()), calls = 3 * (2 + 2 * 3);
  for (const bool fold : {true, false}) {
    // Four nodes of four: replicas of a node each, whose ranks each have their NIC.
    CHECK(taken(hsdp(4, 4), small_cluster(4), cost, fold) ==
          Approx(12 * parameters / 4 / 50e9 + calls * cost.latency_s).epsilon(1e-3));
    // One node: two replicas of two, over NVLink.
    CHECK(taken(hsdp(2, 2), small_cluster(1), cost, fold) ==
          Approx(12 * parameters / 2 / 400e9 + calls * cost.latency_s).epsilon(1e-3));
  }
  // By CPU every rank's transport shares the host's cores.
  FakeCost cpu;
  cpu.host_computes = true, cpu.cpu_per_byte = 1e-9;
  CHECK(taken(hsdp(4, 1), shared_host(4, 2), cpu) ==
        Approx(calls * cpu.latency_s + 12 * parameters * 1e-9 * 4 / 2).epsilon(1e-3));
}

TEST_CASE("the bound of a restore is no slower than its replay, and near it") {
  const FakeCost cost;
  for (const Layout& layout : {hsdp(4, 4), hsdp(2, 8), hsdp(16, 1), hsdp(2, 2)}) {
    const ClusterSpec cluster = small_cluster((layout.world() + 3) / 4);
    const ProgramSet set = restore_programs(small_model(), layout, 12);
    const double bound =
        bound0(set.programs[0], layout, cluster, cost,
               routing_floors(set.programs[0], layout, cluster, *balanced_routing(small_model(), 1), 0, 0), 0);
    const double simulated = taken(layout, cluster, cost);
    CHECK(bound <= simulated * (1 + 1e-6));
    CHECK(bound > 0.9 * simulated);
  }
}
