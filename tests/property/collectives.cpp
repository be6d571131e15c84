// No collective beats the bandwidth of what its bytes must pass, whatever its kind, algorithm, size, group and
// chunking; random draws over the published H100 times and over times without losses.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "sim/cost/calibrate/calibrate.hpp"
#include "sim/cost/collectives/collective_estimator.hpp"
#include "sim/replay/replay.hpp"
#include "tests/fixtures/random_layout.hpp"

using namespace wt;
using namespace wt::test;

namespace {

/// How many members a group has on each of its nodes, ascending ranks.
std::vector<double> spread(const Mesh& mesh, Axis axis, std::int64_t group, const ClusterSpec& cluster) {
  std::map<std::int64_t, double> members;
  for (const std::int64_t rank : mesh.members(axis, group)) members[rank / cluster.gpus_per_node] += 1;
  std::vector<double> out;
  for (const auto& [node, count] : members) out.push_back(count);
  return out;
}

/// Seconds below which no algorithm comes on this hardware. Every byte of a gather that a rank or a node does not hold
/// must enter it, and every byte of a scatter leave it. All of a broadcast's leave the first node, and enter the
/// others. Inside a node a switch may add; between nodes an all-reduce's element enters each node at least once, and
/// all of them 2 (N - 1) times together.
double fastest_s(OpKind kind, double bytes, const std::vector<double>& members, const ClusterSpec& c) {
  const bool whole = kind == OpKind::broadcast;
  const double ranks = std::accumulate(members.begin(), members.end(), 0.0),
               nodes = static_cast<double>(members.size());
  const double in_node =
      bytes * (whole ? 1 : (ranks - 1) / ranks) / (nodes > 1 ? c.nvswitch_Bps + c.nic_per_gpu_Bps() : c.nvswitch_Bps);
  if (nodes == 1) return in_node;
  const double fewest = *std::min_element(members.begin(), members.end());
  double nic_bytes = bytes * (ranks - fewest) / ranks / fewest;
  if (kind == OpKind::all_to_all) nic_bytes *= fewest;  // each member's own
  if (whole) nic_bytes = bytes / fewest;
  if (kind == OpKind::all_reduce) nic_bytes = bytes * std::max(1 / fewest, 2 * (nodes - 1) / ranks);
  return std::max(in_node, nic_bytes / c.nic_per_gpu_Bps());
}

}  // namespace

TEST_CASE("no collective beats its bandwidth bound, at any size, group and chunking") {
  const MachineModel published = calibrate({read_profile("tests/data/h100-profile.json")}, {true}).model;
  FakeCost lossless;
  lossless.latency_s = 1e-9;
  Draw draw(5);
  for (int i = 0; i < 1000; ++i) {
    lossless.algorithm = kAllReduces[static_cast<std::size_t>(draw.below(kAllReduces.size()))];
    const OpKind kind = draw.of<OpKind>(
        {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce, OpKind::all_to_all, OpKind::broadcast});
    ClusterSpec cluster = small_cluster(1);
    cluster.gpus_per_node = cluster.nic_count = 8, cluster.nvswitch_Bps = 450e9, cluster.nic_Bps = 50e9;
    Layout layout;
    Axis axis = Axis::shard;
    switch (draw.below(3)) {
      case 0:  // whole nodes, or part of one
        cluster.nodes = std::int64_t{1} << draw.below(kind == OpKind::all_to_all ? 4 : 8);
        layout.shard = cluster.nodes == 1 ? draw.between(2, 8) : 8 * cluster.nodes;
        break;
      case 1:  // one member a node
        cluster.nodes = std::int64_t{2} << draw.below(kind == OpKind::all_to_all ? 3 : 7);
        layout.shard = 8, layout.replicate = cluster.nodes, axis = Axis::replicate;
        break;
      default:  // as it comes: 8 + 4, 4 + 8, 3 + 3 + 2, ...
        layout.shard = draw.between(2, 30), layout.replicate = draw.between(2, 10);
        if (draw.once_in(2)) axis = Axis::replicate;
        cluster.nodes = (layout.world() + 7) / 8;
    }
    const Mesh mesh(layout);
    const double bytes = draw.scaled(1, 64e9);
    const int chunks = static_cast<int>(draw.between(1, 8));

    Program program;
    program.layers = program.microbatches = 1;
    for (int c = 0; c < chunks; ++c) {
      Op op;
      op.name = "part" + std::to_string(c), op.kind = kind;
      op.lane =
          draw.of<Lane>({Lane::all_gather, Lane::reduce_scatter, Lane::all_reduce});  // one after another, or at once
      op.collective = {axis, {bytes / chunks, 0}};
      program.nodes.emplace_back(op);
    }
    const ProgramSet set{{program}, std::vector<int>(static_cast<std::size_t>(layout.world()), 0)};
    // All-to-alls need every member; the folded set of a node has them only inside it.
    const ReplayOptions options{0, kind != OpKind::all_to_all, false, {}};
    const OpCost& cost = draw.once_in(2) ? static_cast<const OpCost&>(published) : lossless;
    const double taken =
        replay(set, layout, small_model(), cluster, cost, *balanced_routing(small_model(), 1), options).step_s;
    double fastest = 0;
    std::string members;
    for (std::int64_t group = 0; group < layout.world() / mesh.size(axis); ++group) {
      const auto on_nodes = spread(mesh, axis, group, cluster);
      const double seconds = fastest_s(kind, bytes, on_nodes, cluster);
      if (seconds <= fastest) continue;
      fastest = seconds, members.clear();
      for (const double each : on_nodes) members += fmt::format("{}{}", members.empty() ? "" : " + ", each);
    }
    INFO(to_string(kind) << " of " << bytes << " B in " << chunks << " parts over " << members << " ranks, "
                         << (&cost == &lossless ? "lossless " + to_string(lossless.algorithm) : "published"));
    CHECK(taken >= fastest * (1 - 1e-9));
    // A ring that is alone comes near it; trees send more than needed, and the switch adds at twice the cost on few
    // GPUs.
    const bool near = kind != OpKind::all_reduce || lossless.algorithm == AllReduce::ring;
    if (&cost == &lossless && bytes > 1e6 && near) CHECK(taken < 2.5 * fastest + 1e-6);
  }
}

TEST_CASE("of a group on 8 GPUs of one node and 4 of another, the 4 are what it waits for") {
  const double B = 6e9;
  const auto taken = [&](OpKind kind, std::int64_t replicas, AllReduce algorithm = AllReduce::ring) {
    Op op;
    op.name = "one", op.kind = kind, op.lane = Lane::all_gather, op.collective = {Axis::shard, {B, 0}};
    Program program;
    program.layers = program.microbatches = 1;
    program.nodes.emplace_back(op);
    Layout layout;
    layout.replicate = replicas, layout.shard = 12;
    ClusterSpec cluster = small_cluster(3);
    cluster.gpus_per_node = cluster.nic_count = 8;
    FakeCost cost;
    cost.latency_s = 0, cost.algorithm = algorithm;
    const ProgramSet set{{program}, std::vector<int>(static_cast<std::size_t>(layout.world()), 0)};
    return replay(set, layout, small_model(), cluster, cost, *balanced_routing(small_model(), 1), {0, false, false, {}})
        .step_s;
  };
  for (const std::int64_t replicas : {1, 2}) {  // the second one has its 4 on the first node, beside the other's
    const double once = B * 11 / 12 / (4 * 50e9);
    CHECK(taken(OpKind::all_gather, replicas) == Approx(once));
    CHECK(taken(OpKind::reduce_scatter, replicas) == Approx(once));
    CHECK(taken(OpKind::broadcast, replicas) == Approx(B / (4 * 50e9)));
    CHECK(taken(OpKind::all_reduce, replicas) == Approx(2 * once));
    for (const AllReduce each : {AllReduce::tree, AllReduce::nvls_tree, AllReduce::hierarchical})
      CHECK(taken(OpKind::all_reduce, replicas, each) == Approx(B / (4 * 50e9)));
    CHECK(taken(OpKind::all_to_all, replicas) == Approx(B * 8 / 12 / 50e9));  // what each of the 4 sends the 8
  }
}

namespace {

const std::vector<OpKind> kKinds = {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce,
                                    OpKind::all_to_all, OpKind::broadcast,      OpKind::send};

/// Any machine and group, or the published H100's own.
CollectiveMachine any_machine(Draw& draw) {
  const std::string gpu = draw.of<std::string>({"A100", "H100", "H200", "B200", "H100-PCIe"});
  const std::string fabric = draw.of<std::string>(
      {"8x400G IB", "4x100G IB", "EFA v2 32x100G", "EFA v1 4x100G", "TCPX 8x200G", "HF cluster (EFA p5, recalled)"});
  CollectiveMachine machine = machine_of(gpu, read_interconnect(fabric, 8));
  if (draw.once_in(3)) machine.only = kAllReduces[static_cast<std::size_t>(draw.below(kAllReduces.size()))];
  if (draw.once_in(2)) machine.hop_s = draw.scaled(1e-6, 1e-3);
  return machine;
}

RankGroup any_group(Draw& draw, OpKind kind) {
  const std::int64_t nodes = draw.once_in(3) ? 1 : draw.between(2, 600);
  if (kind == OpKind::send) return {2, std::min<std::int64_t>(2, nodes)};
  return {nodes * draw.between(nodes == 1 ? 2 : 1, 8), nodes};
}

/// Seconds alone, with what its algorithm puts on its wires.
double alone_s(const CollectiveEstimator& estimator, const CollectiveQuestion& q) {
  const CollectiveEstimate estimate = estimator.estimate(q);
  if (q.machine.only) CHECK(estimate.algorithm == *q.machine.only);
  CHECK(estimate.efficiency > 0);
  CHECK(estimate.efficiency <= 1);
  CHECK(estimate.latency_s > 0);
  const double moving = wire_s(q, estimate.algorithm) / estimate.efficiency;
  CHECK(moving >= least_s(q, estimate.algorithm) * (1 - 1e-9));
  CHECK(estimator.seconds(q) == Approx(estimate.latency_s + moving));
  return estimate.latency_s + moving;
}

/// Published times, and those of a machine that measured some of its own.
const std::vector<CollectiveEstimator>& estimators() {
  static const std::vector<CollectiveEstimator> all = {
      CollectiveEstimator::published(),
      CollectiveEstimator::published().with_own(
          calibrate({read_profile("tests/data/h100-profile.json")}).model.data().collectives.points)};
  return all;
}

}  // namespace

TEST_CASE("collectives never beat their wires, and more bytes never take less") {
  Draw draw(6);
  for (int i = 0; i < 3000; ++i) {
    const CollectiveEstimator& estimator = estimators()[static_cast<std::size_t>(draw.below(2))];
    const OpKind kind = draw.of<OpKind>(kKinds);
    const CollectiveMachine machine = any_machine(draw);
    const RankGroup group = any_group(draw, kind);
    const double bytes = draw.scaled(4, 64e9);
    INFO(to_string(kind) << " of " << bytes << " B over " << group.ranks << " ranks on " << group.nodes << " nodes, "
                         << (machine.only ? to_string(*machine.only) : "NCCL's choice") << ", " << machine.transport);
    const double seconds = alone_s(estimator, {kind, bytes, group, machine});
    CHECK(alone_s(estimator, {kind, draw.scaled(1, 3) * bytes, group, machine}) >= seconds * (1 - 1e-9));
  }
}

TEST_CASE("a faster network or NVLink never makes a collective slower, nor does a shorter way") {
  Draw draw(7);
  for (int i = 0; i < 3000; ++i) {
    const CollectiveEstimator& estimator = estimators()[static_cast<std::size_t>(draw.below(2))];
    const OpKind kind = draw.of<OpKind>(kKinds);
    CollectiveMachine machine = any_machine(draw);
    machine.hop_s = draw.scaled(1e-6, 1e-3);
    const RankGroup group = any_group(draw, kind);
    const double bytes = draw.scaled(4, 64e9);
    const double seconds = alone_s(estimator, {kind, bytes, group, machine});
    INFO(to_string(kind) << " of " << bytes << " B over " << group.ranks << " ranks on " << group.nodes << " nodes, "
                         << (machine.only ? to_string(*machine.only) : "NCCL's choice") << ", " << machine.transport);
    for (double CollectiveMachine::*rate : {static_cast<double CollectiveMachine::*>(&CollectiveMachine::nic_Bps),
                                            static_cast<double CollectiveMachine::*>(&CollectiveMachine::nvlink_Bps)}) {
      CollectiveMachine faster = machine;
      faster.*rate *= draw.scaled(1, 8);
      CHECK(alone_s(estimator, {kind, bytes, group, faster}) <= seconds * (1 + 1e-9));
    }
    CollectiveMachine nearer = machine;
    nearer.hop_s /= draw.scaled(1, 8);
    CHECK(alone_s(estimator, {kind, bytes, group, nearer}) <= seconds * (1 + 1e-9));
  }
}

TEST_CASE("two all-reduces on one NIC take as long as one of both, whatever the algorithm") {
  for (const AllReduce algorithm : kAllReduces) {
    const auto taken = [&](int parts, Lane second) {
      Program program;
      program.layers = program.microbatches = 1;
      for (int c = 0; c < parts; ++c) {
        Op op;
        op.name = "part" + std::to_string(c), op.kind = OpKind::all_reduce;
        op.lane = c == 0 ? Lane::all_reduce : second;
        op.collective = {Axis::shard, {2e9 / parts, 0}};
        program.nodes.emplace_back(op);
      }
      Layout layout;
      layout.shard = 16;
      FakeCost cost;
      cost.latency_s = 0, cost.algorithm = algorithm;
      const ProgramSet set{{program}, std::vector<int>(16, 0)};
      return replay(set, layout, small_model(), small_cluster(4), cost, *balanced_routing(small_model(), 1),
                    {0, false, false, {}})
          .step_s;
    };
    INFO(to_string(algorithm));
    CHECK(taken(2, Lane::all_reduce) == Approx(taken(1, Lane::all_reduce)));  // one after the other
    CHECK(taken(2, Lane::all_gather) == Approx(taken(1, Lane::all_reduce)));  // at once
    const PortBytes ports = all_reduce_ports(algorithm, 16, 4, 4);
    CHECK(taken(1, Lane::all_reduce) == Approx(2e9 * std::max(ports.nvlink / 400e9, ports.nic / 50e9)));
  }
}
