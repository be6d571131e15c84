// The simulator against closed forms, and what must hold for every layout: bounds, conservation, determinism.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "sim/bounds/bounds.hpp"
#include "sim/cluster/child.hpp"
#include "sim/replay/bind.hpp"
#include "sim/replay/traffic.hpp"
#include "tests/fixtures/replayed_run.hpp"

using namespace wt;
using namespace wt::test;

TEST_CASE("an all-gather of S bytes over N nodes takes alpha + S(n-1)/n over what the NICs reach") {
  FakeCost cost;
  cost.efficiency = 0.8;
  for (std::int64_t nodes : {2, 4, 8}) {
    const Layout layout = layout_of(1, 4 * nodes, 1);
    const double n = static_cast<double>(layout.world()), S = 1e9;
    const auto set =
        same_on_all({collective_op("ag", OpKind::all_gather, Lane::all_gather, Axis::shard, S)}, layout.world());
    const auto routing = balanced_routing(small_model(), 1);
    for (bool fold : {true, false}) {
      const auto r = replay(set, layout, small_model(), small_cluster(nodes), cost, *routing, {0, fold, true, {}});
      CHECK(r.step_s == Approx(2e-5 + S * (n - 1) / n / (4 * 50e9 * 0.8)).epsilon(1e-6));
      CHECK(r.exposed_s == Approx(r.step_s));
    }
  }
}

TEST_CASE("inside a node a gather uses NVLink alone, and an all-reduce moves twice as much") {
  const Layout layout = layout_of(1, 4, 1);
  const auto routing = balanced_routing(small_model(), 1);
  for (OpKind kind : {OpKind::all_gather, OpKind::all_reduce}) {
    const auto set = same_on_all({collective_op("c", kind, Lane::all_reduce, Axis::shard, 8e8)}, 4);
    const auto r = replay(set, layout, small_model(), small_cluster(1), FakeCost{}, *routing);
    CHECK(r.step_s == Approx(2e-5 + (kind == OpKind::all_reduce ? 2 : 1) * 8e8 * 0.75 / 400e9).epsilon(1e-6));
  }
}

TEST_CASE("a group with one member a node gets that GPU's share of the NICs, not the node's") {
  const Layout layout = layout_of(2, 4, 1);  // replicate groups: rank r of both nodes
  const auto set = same_on_all({collective_op("ar", OpKind::all_reduce, Lane::all_reduce, Axis::replicate, 1e8)}, 8);
  const auto r = replay(set, layout, small_model(), small_cluster(2), FakeCost{}, *balanced_routing(small_model(), 1));
  CHECK(r.step_s == Approx(2e-5 + 1e8 / 50e9).epsilon(1e-6));  // 2 (2-1)/2 = 1
}

TEST_CASE("times of a host are not taken for GPUs, nor those of a GPU for a host") {
  const Run run(layout_of(1, 4, 1));
  FakeCost host;
  host.host_computes = true;
  CHECK_THROWS_WITH(run.replay(small_cluster(1), host),
                    Catch::Contains("host whose ranks share cores for cluster small of GPUs"));
  CHECK_THROWS_WITH(run.replay(shared_host(4, 2), FakeCost{}),
                    Catch::Contains("a GPU for cluster host, a host whose ranks share cores"));
}

TEST_CASE("executions share the cores of a host, and one uses at most one core") {
  for (auto [ranks, seconds] : {std::pair{1, 1.0}, {2, 1.0}, {3, 1.5}, {4, 2.0}}) {
    Op op;
    op.name = "work";
    op.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, {1, 0})};
    FakeCost cost;
    cost.host_computes = true;
    cost.flops = 1e30, cost.Bps = 8 / (1 - 1e-6);  // 8 bytes a copied word: 1 s with the microsecond of overhead
    const auto set = same_on_all({op}, ranks);
    const auto r = replay(set, layout_of(1, ranks, 1), small_model(), shared_host(ranks, 2), cost,
                          *balanced_routing(small_model(), 1));
    CHECK(r.step_s == Approx(seconds).epsilon(1e-6));
    cost.crowded = 1.25;  // one alone is not
    const auto crowded = replay(set, layout_of(1, ranks, 1), small_model(), shared_host(ranks, 2), cost,
                                *balanced_routing(small_model(), 1));
    CHECK(crowded.step_s == Approx((ranks > 1 ? 1.25 : 1) * seconds).epsilon(1e-6));
  }
}

TEST_CASE("a synchronous host stands still where it waits for a collective, and that time is the collective's") {
  Op gather = collective_op("gather", OpKind::all_gather, Lane::all_gather, Axis::shard, 1e6);
  Op first, second;
  first.name = "first", second.name = "second";
  second.waits = {{"gather"}};
  FakeCost cost;
  cost.host_computes = true, cost.latency_s = 0.5, cost.cpu_per_byte = 1e-6;  // 1 s on each of 2 ranks and 2 cores
  const auto set = same_on_all({gather, first, second}, 2);
  const auto r =
      replay(set, layout_of(1, 2, 1), small_model(), shared_host(2, 2), cost, *balanced_routing(small_model(), 1));
  const auto& ops = r.timelines[0].ops;
  CHECK(ops[0].done_s == Approx(1.5).epsilon(1e-5));
  CHECK(ops[2].issued_s == Approx(ops[0].done_s));
  CHECK(ops[0].waited_s == Approx(1.5 - 1e-6).epsilon(1e-5));
  CHECK(r.exposed_s == Approx(ops[0].waited_s));
}

TEST_CASE("the shape of a ring in closed form is that of its listed members") {
  for (const Layout& layout : kLayouts)
    for (Axis axis :
         {Axis::replicate, Axis::shard, Axis::expert, Axis::expert_shard, Axis::tensor, Axis::state, Axis::world}) {
      const ClusterSpec cluster = small_cluster(layout.world() / 4);
      const Traffic traffic(cluster, layout, every_rank(layout), {});
      const GroupInstance group = traffic.group(axis, 0);
      const auto shape = group_shape(cluster, layout, axis);
      INFO(layout.name() << " " << to_string(axis));
      REQUIRE(shape);
      CHECK(shape->size == group.size);
      CHECK(shape->nodes == group.nodes);
      CHECK(shape->gather_s_per_byte == Approx(traffic.alone_s(group.ring)));
      for (const AllReduce each : kAllReduces)
        CHECK(shape->reduce_s_per_byte[static_cast<std::size_t>(each)] ==
              Approx(traffic.alone_s(traffic.all_reduce(group, each))));
    }
  CHECK(!group_shape(small_cluster(2), layout_of(1, 6, 1), Axis::shard));
}

TEST_CASE("bound 0 <= bound 1 <= simulated") {
  const bool host = GENERATE(false, true);
  for (const Microbatches& sequences : {Microbatches{2, 1, 1}, {3, 4, 1}})
    for (const Layout& layout : kLayouts) {
      const Run run(layout, true, 3, sequences);
      FakeCost cost;
      cost.host_computes = host, cost.cpu_per_byte = host ? 1e-11 : 0;
      const ClusterSpec cluster = host ? shared_host(layout.world(), 2) : small_cluster(layout.world() / 4, 2);
      const auto floors = routing_floors(run.set.programs[0], layout, cluster, *run.routing, 0, 0);
      const double b0 = bound0(run.set.programs[0], layout, cluster, cost, floors);
      const double b1 = bound1(run.set, layout, cluster, cost, *run.routing);
      const double simulated = run.replay(cluster, cost).step_s;
      INFO(layout.name());
      CHECK(b0 > 0.1 * simulated);
      CHECK(b0 <= b1 * (1 + 1e-9));
      CHECK(b1 <= simulated * (1 + 1e-6));
    }
}

TEST_CASE("what steps are off by multiplies the interval of a rank that waits for nobody, and no time") {
  const Run run(layout_of(1, 1, 1));
  ReplayOptions how;
  how.off_by = {{0.5, 1.5}};
  const ReplayResult own = run.replay(small_cluster(1), FakeCost{}),
                     off = run.replay(small_cluster(1), FakeCost{}, how);
  CHECK(off.digest == own.digest);
  CHECK(off.low_s == Approx(0.5 * own.low_s));
  CHECK(off.high_s == Approx(1.5 * own.high_s));
}

TEST_CASE("a rank's step is what its compute lane did and what it stood still for; ops keep their order") {
  for (bool host : {false, true}) {
    const Run run(layout_of(2, 8, 4, Recompute::block));
    FakeCost cost;
    cost.host_computes = host, cost.cpu_per_byte = host ? 1e-10 : 0;
    const auto r = run.replay(host ? shared_host(16, 2) : small_cluster(4), cost);
    const auto instances = unroll(run.set.programs[0]);
    double sum = 0;
    for (double seconds : r.evidence_s) sum += seconds;
    CHECK(sum == Approx(r.step_s).epsilon(1e-9));
    CHECK(r.evidence_s[static_cast<std::size_t>(Evidence::derived)] ==
          Approx(0).margin(1e-12));  // all times have a root
    for (const OpClassTotal& t :
         r.totals)  // gathers that move nothing are the host's, the others name the class's lane
      if (t.action == Action::unshard && t.group == Group::dense) CHECK(t.lane == Lane::all_gather);
    CHECK(r.lane_busy_s[0] + r.exposed_s == Approx(r.step_s).epsilon(1e-6));
    CHECK(r.low_s < r.step_s);
    CHECK(r.high_s > r.step_s);
    for (const StepTimeline& t : r.timelines) {
      CHECK(t.peak_bytes == std::max_element(t.ops.begin(), t.ops.end(), [](auto& a, auto& b) {
                              return a.peak_bytes < b.peak_bytes;
                            })->peak_bytes);
      CHECK(t.ops.size() == instances.size());
      for (std::size_t i = 0; i < t.ops.size(); ++i) {
        CHECK(t.ops[i].done_s >= t.ops[i].issued_s);
        for (int w : instances[i].waits) CHECK(t.ops[i].issued_s >= t.ops[static_cast<std::size_t>(w)].done_s);
      }
    }
  }
}

TEST_CASE("no pool carries more than its capacity allows in the step's time") {
  for (const Layout& layout : kLayouts) {
    const Run run(layout);
    const ClusterSpec cluster = small_cluster(layout.world() / 4, 2);
    const auto all = every_rank(layout);
    const FakeCost cost;
    const auto bound = bind_step({run.set, layout, cluster, cost, *run.routing}, all);
    std::vector<double> carried(bound->tasks.capacity.size());
    for (const CollectiveTask& task : bound->tasks.collectives) {
      if (task.load < 0) continue;
      const PoolLoad& load = bound->tasks.loads[static_cast<std::size_t>(task.load)];
      for (std::size_t i = 0; i < load.pools.size(); ++i)
        carried[static_cast<std::size_t>(load.pools[i])] += task.scale * load.amounts[i];
    }
    const double step_s = run.replay(cluster, FakeCost{}).step_s;
    double fullest = 0;
    for (std::size_t p = 0; p < carried.size(); ++p)
      fullest = std::max(fullest, carried[p] / bound->tasks.capacity[p] / step_s);
    INFO(layout.name());
    CHECK(fullest < 1);
    CHECK(fullest > 0.05);
  }
}

TEST_CASE("an exchange delivers to every rank what the others sent it, there and back") {
  Op there, back;
  there.action = Action::dispatch, there.collective.bytes = {800, 0};
  back.action = Action::collect, back.collective.bytes = {0, 100};
  const std::vector<double> sends{6, 2, 1, 7};  // rows of sources 0 and 1
  CHECK(exchange_bytes({&there, &there}, sends, {800, 800}) == std::vector<double>{600, 200, 100, 700});
  CHECK(exchange_bytes({&back, &back}, sends, {700, 900}) == std::vector<double>{600, 100, 200, 700});
  there.collective.kept_row_bytes = 50;  // of at most 16 rows each, 8 are kept
  CHECK(exchange_bytes({&there, &there}, sends, {800, 800}) == std::vector<double>{300, 100, 50, 350});
}

TEST_CASE("a dispatcher that sends a token once crosses to a node once, and passes it on over NVLink") {
  const Layout layout = layout_of(1, 8, 8);
  const ClusterSpec cluster = small_cluster(2);
  const Traffic traffic(cluster, layout, every_rank(layout), {});
  const GroupInstance group = traffic.group(Axis::expert, 0);
  const std::vector<double> bytes(64, 1e8);  // of each rank to each, itself included
  CHECK(traffic.alone_s(traffic.all_to_all(group, bytes)) == Approx(4e8 / 50e9));
  // Of a token's four rows half go to the other node: there is one with a probability of 15/16.
  CHECK(share_sent_once(0.5, 4) == Approx(15.0 / 32));
  CHECK(traffic.alone_s(traffic.all_to_all(group, bytes, 4)) == Approx(4e8 * 15 / 32 / 50e9));
  CHECK(share_sent_once(0.5, 1) == 1);
  CHECK(traffic.alone_s(traffic.all_to_all(group, bytes, 1)) == Approx(4e8 / 50e9));  // one row: nothing to spare
}

TEST_CASE("where all experts get as many rows one rank of a stage stands for all of it") {
  Layout whole = tensor_layout(4, layout_of(1, 4, 8));
  whole.whole_experts = true;
  Layout staged = stage_layout(2, tensor_layout(2, layout_of(1, 4, 4)));
  for (Layout layout : {layout_of(1, 8, 4), layout_of(2, 8, 8), tensor_layout(2, layout_of(1, 8, 4)), whole, staged})
    for (const Dispatcher dispatcher : {Dispatcher::alltoall, Dispatcher::deepep}) {
      layout.dispatcher = dispatcher;
      const Run run(layout, false);
      const ClusterSpec cluster = small_cluster(layout.world() / 4);
      INFO(layout.name());
      const ReplayResult all = run.replay(cluster, FakeCost{}, {0, false, true, {}}),
                         one = run.replay(cluster, FakeCost{}, {0, true, true, {}});
      CHECK(one.folded);
      CHECK(one.simulated_ranks == layout.pipeline);
      CHECK(one.step_s == Approx(all.step_s).epsilon(1e-6));
      CHECK(one.exposed_s == Approx(all.exposed_s).epsilon(1e-6));
    }
}

TEST_CASE("the same step gives the same times bit by bit") {
  const Run run(layout_of(2, 8, 4));
  const auto a = run.replay(small_cluster(4), FakeCost{}), b = run.replay(small_cluster(4), FakeCost{});
  CHECK(a.digest == b.digest);
  FakeCost slower;
  slower.latency_s = 3e-5;
  CHECK(run.replay(small_cluster(4), slower).digest != a.digest);
}

TEST_CASE("the fullest expert rank sets the pace") {
  CHECK(Run(layout_of(1, 8, 4), true).replay(small_cluster(2), FakeCost{}).step_s >
        Run(layout_of(1, 8, 4), false).replay(small_cluster(2), FakeCost{}).step_s);
}

TEST_CASE(
    "ops that vary: ranks that meet after each wait for the slowest, alone they take their mean; the same step "
    "repeats") {
  constexpr int kOps = 400;
  const Layout layout = layout_of(1, 4, 1);
  FakeCost cost;
  cost.latency_s = 0;
  const auto step = [&](bool meet, std::int64_t number, bool vary = true) {
    std::vector<Op> ops;
    for (int i = 0; i < kOps; ++i) {
      Op work;
      work.name = "work" + std::to_string(i);
      work.work = {make_item(Kernel::copy, Pass::forward, Precision::fp32, {(1e-3 - 1e-6) * cost.Bps / 8, 0})};  // 1 ms
      if (meet && i > 0) work.waits = {{"sum" + std::to_string(i - 1)}};
      ops.push_back(work);
      if (!meet) continue;
      ops.push_back(collective_op("sum" + std::to_string(i), OpKind::all_reduce, Lane::all_reduce, Axis::shard, 0));
      ops.back().waits = {{work.name}};
    }
    ReplayOptions options{number, false, true, {}};
    options.vary = vary;
    return replay(same_on_all(ops, 4), layout, small_model(), small_cluster(1), cost,
                  *balanced_routing(small_model(), 1), options);
  };
  const double steady_s = step(true, 0).step_s;  // no variation is known
  CHECK(steady_s == Approx(kOps * 1e-3).epsilon(0.003));
  for (double deviation : {0.05, 0.1, 0.2}) {
    cost.varies = deviation;
    CHECK(step(true, 0, false).step_s == steady_s);
    const ReplayResult met = step(true, 3), alone = step(false, 3);
    CHECK((met.step_s - steady_s) / (kOps * 1e-3) ==
          Approx(1.0294 * deviation).epsilon(0.15));  // mean of the largest of four normal numbers
    for (const StepTimeline& rank : alone.timelines)
      CHECK(rank.step_s == Approx(kOps * 1e-3).epsilon(3 * deviation / std::sqrt(kOps)));
    CHECK(step(true, 3).digest == met.digest);
    CHECK(step(true, 4).digest != met.digest);
  }
  ReplayOptions folded;
  folded.vary = true;
  CHECK_THROWS_WITH(replay(same_on_all({}, 4), layout, small_model(), small_cluster(1), cost,
                           *balanced_routing(small_model(), 1), folded),
                    Catch::Contains("vary with fold"));
}

TEST_CASE("programs that disagree on a collective are refused by name") {
  ProgramSet set = same_on_all({collective_op("ag", OpKind::all_gather, Lane::all_gather, Axis::shard, 1e6)}, 8);
  set.programs.push_back(
      same_on_all({collective_op("rs", OpKind::reduce_scatter, Lane::reduce_scatter, Axis::shard, 1e6)}, 8)
          .programs[0]);
  set.class_of_rank[5] = 1;
  const auto routing = balanced_routing(small_model(), 1);
  CHECK_THROWS_WITH(replay(set, layout_of(1, 8, 1), small_model(), small_cluster(2), FakeCost{}, *routing),
                    Catch::Contains("call 0 of rank 5 on axis shard is rs"));
  CHECK_THROWS_WITH(replay(set, layout_of(1, 8, 1), small_model(), small_cluster(1), FakeCost{}, *routing),
                    Catch::Contains("1 nodes x 4 = 4"));
}

TEST_CASE("errors and crashes of a simulation come back as errors") {
  CHECK(run_in_child([] { return std::string(200000, 'x'); }) == std::string(200000, 'x'));
  CHECK_THROWS_WITH(run_in_child([]() -> std::string { throw_usage("no {}", 7); }), "no 7");
  CHECK_THROWS_WITH(run_in_child([]() -> std::string { std::abort(); }), Catch::Contains("signal 6"));
}

TEST_CASE("children beside each other answer in order, and the first error of that order comes back") {
  std::vector<std::function<std::string()>> works;
  for (int i = 0; i < 9; ++i)
    works.emplace_back([i] {
      ::usleep(static_cast<useconds_t>(1000 * (9 - i)));  // later ones end earlier
      return std::string(static_cast<std::size_t>(30000 * i), static_cast<char>('a' + i));
    });
  std::vector<std::size_t> done;
  const std::vector<std::string> answers = run_in_children(works, [&](std::size_t i) { done.push_back(i); });
  REQUIRE(answers.size() == works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    CHECK(answers[i] == works[i]());
    CHECK(done[i] == i);
  }
  works[2] = []() -> std::string { throw_usage("no {}", 2); };
  works[3] = []() -> std::string { std::abort(); };
  CHECK_THROWS_WITH(run_in_children(works), "no 2");
  CHECK(run_in_children({}).empty());
}

TEST_CASE("how rows fall on a rank's experts counts, not their sum alone") {
  const ModelSpec model = small_model();
  const std::vector<std::vector<double>> even(3, std::vector<double>(16, 1));
  std::vector<std::vector<double>> uneven = even;
  for (auto& layer : uneven)
    for (std::size_t e = 0; e < layer.size(); ++e)
      layer[e] = e % 2 == 0 ? 1.5 : 0.5;  // in every block of experts as many
  for (std::int64_t expert : {1, 2, 4}) {
    const Layout layout = layout_of(2, 4, expert);
    ProgramOptions options;
    options.seq = 512;
    const ProgramSet set = build_program_set(model, layout, options);
    const auto step = [&](const std::vector<std::vector<double>>& shares, bool fold) {
      return replay(set, layout, model, small_cluster(2), FakeCost{}, *histogram_routing(model, 512, shares, ""),
                    {0, fold, true, {}})
          .step_s;
    };
    INFO(expert);
    CHECK(step(even, true) < 0.999 * step(uneven, true));
    CHECK(step(uneven, true) == Approx(step(uneven, false)).epsilon(1e-6));
  }
}

TEST_CASE("a rank's rows are those of its experts' slots, copies among them") {
  const ModelSpec model = small_model();
  Layout layout = layout_of(1, 4, 2);
  layout.placement.assign(3, {0, 1, 2, 3, 4, 5, 6, 7, 0, 8, 9, 10, 11, 12, 13, 14, 15, 8});  // 0 and 8 twice
  std::vector<std::vector<double>> shares(3);
  for (std::size_t layer = 0; layer < 3; ++layer)
    for (std::size_t e = 0; e < 16; ++e) shares[layer].push_back(static_cast<double>(e + layer + 1));
  const auto routing = histogram_routing(model, 1024, shares, "");
  const RoutingTable table(*routing, layout, 3, 1, 0, {0, 1});
  for (int layer = 0; layer < 3; ++layer)
    for (std::int64_t rank = 0; rank < 4; ++rank) {
      const auto counts = routing->counts(0, 0, layer, 0);
      const auto got = table.by_expert(0, layer, rank);
      REQUIRE(got.size() == 9);
      double sum = 0;
      for (std::size_t slot = 0; slot < 9; ++slot) {
        const auto e =
            static_cast<std::size_t>(layout.expert_in_slot(layer, rank % 2 * 9 + static_cast<std::int64_t>(slot)));
        CHECK(got[slot] == Approx(2 * counts[e] / (e == 0 || e == 8 ? 2 : 1)));  // of two sources
        sum += got[slot];
      }
      CHECK(table.rows(0, layer, rank) == Approx(sum));
    }
}

TEST_CASE("the host's optimizer: two copies and an update one after the other, beside the GPU's; Muon's beside none") {
  const ModelSpec model = small_model();
  const Layout layout = layout_of(1, 8, 1);
  const FakeCost cost;
  const auto replayed = [&](OptimizerKind kind, double offload) {
    ProgramOptions options{512, 1, Precision::bf16};
    options.optimizer = kind, options.offload_fraction = offload;
    return replay(build_program_set(model, layout, options), layout, model, small_cluster(2), cost,
                  *histogram_routing(model, 512, std::vector<std::vector<double>>(3, std::vector<double>(16, 1)), ""));
  };
  const auto done_s = [](const ReplayResult& r, const std::string& id) {
    for (const OpRecord& op : r.timelines[0].ops)
      if (op.id == id) return op.done_s;
    return -1.0;
  };
  const ReplayResult gpu = replayed(OptimizerKind::adamw, 0), host = replayed(OptimizerKind::adamw, 1),
                     muon = replayed(OptimizerKind::muon, 0);
  double states = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const Group group : {Group::dense, Group::expert})
      states += static_cast<double>(state_elements(model, layout, group, layer));
  for (const Group group : {Group::embedding, Group::head})
    states += static_cast<double>(state_elements(model, layout, group, 0));
  const double chain_s = 3e-6 + 15 * states / cost.flops + (4 + 28 + 2) * states / cost.Bps;
  CHECK(done_s(host, "offload.weights") - done_s(host, "norm.reduce") == Approx(chain_s));
  CHECK(done_s(host, "optimizer") - done_s(host, "norm.reduce") == Approx(1e-6));
  CHECK(host.step_s >= done_s(host, "offload.weights"));
  CHECK(muon.step_s > gpu.step_s);
  CHECK(done_s(muon, "optimizer") > done_s(muon, "muon.expert"));
}
