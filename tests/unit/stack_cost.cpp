// Times from published measurements alone: no faster than the hardware, growing with size, scaled by data sheets.
#include "sim/cost/stacks/stack_cost.hpp"
#include "configs/files/data_sheet.hpp"
#include "sim/cost/published_constants.hpp"
#include "sim/cost/stacks/step_constants.hpp"

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "planner/search/scaled_cost.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/cost/stacks/step_intervals.hpp"
#include "tests/fixtures/published_reference.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using Catch::Contains;

namespace {

const ClusterSpec& cluster(const std::string& name) {
  static std::map<std::string, ClusterSpec> known;
  return known.try_emplace(name, read_cluster(name)).first->second;
}

const StackCost& cost(const std::string& on, const std::string& stack) {
  static std::map<std::string, StackCost> known;
  const auto found = known.find(on + stack);
  if (found != known.end()) return found->second;
  return known.try_emplace(on + stack, test::stack_cost(cluster(on), stack)).first->second;
}

/// Of steps that are off by {0.9, 1.1} where they were measured.
StepIntervals intervals(const ClusterSpec& on, const std::string& stack,
                        const ErrorBounds& bounds = {.by_regime = {}, .by_kind = {}, .all = {0.9, 1.1}}) {
  const PublishedTimes& published = test::published();
  return {bounds, on, read_stack(stack), published.stack_fit().model(), published.benchmarks()};
}

WorkItem bf16(Kernel kernel, std::array<std::int64_t, 4> dims) {
  return make_item(kernel, Pass::forward, Precision::bf16, {8192, 0}, dims);
}

}  // namespace

TEST_CASE("a product takes longer than its FLOPs at the data sheet's rate, a copy longer than its bytes") {
  const StackCost& h100 = cost("hgx-h100", "torchtitan");
  const WorkItem product = bf16(Kernel::gemm, {8192, 8192}), norm = bf16(Kernel::rmsnorm, {8192});
  CHECK(h100.item(product, 0).seconds > product.flops(0) / 989e12);
  CHECK(h100.item(product, 0).seconds < 3 * product.flops(0) / 989e12);
  CHECK(h100.item(norm, 0).seconds > norm.bytes(0) / 3.35e12);
  // H200 is an H100 with faster memory.
  const StackCost& h200 = cost("hgx-h200", "torchtitan");
  CHECK(h100.item(norm, 0).seconds / h200.item(norm, 0).seconds > 1.25);
  CHECK(h100.item(norm, 0).seconds / h200.item(norm, 0).seconds <= Approx(4.8 / 3.35));
  CHECK(cost("aws-p4d", "torchtitan").item(product, 0).seconds > 2.2 * h100.item(product, 0).seconds);
}

TEST_CASE("unlike groups of a product take no less time than equal ones") {
  const StackCost& h100 = cost("hgx-h100", "torchtitan");
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    const WorkItem product = make_item(Kernel::grouped_gemm, pass, Precision::bf16, {0, 1}, {4096, 2048, 4});
    const auto over_equal = [&](double rows, const std::vector<double>& groups) {
      return h100.item(product, {rows, groups}).seconds / h100.item(product, rows).seconds;
    };
    CHECK(over_equal(8192, {2048, 2048, 2048, 2048}) == 1);
    CHECK(over_equal(8192, {8192, 0, 0, 0}) == 1);
    CHECK(over_equal(8192, {5000, 1800, 1300, 92}) > 1);
    CHECK(over_equal(8192, {5000, 1800, 1300, 92}) < 1.15);
  }
}

TEST_CASE("an op is its items, and the host's launches of them stand beside") {
  const StackCost& h100 = cost("hgx-h100", "torchtitan");
  Op large, small;
  large.work = {bf16(Kernel::gemm, {8192, 8192}), bf16(Kernel::rmsnorm, {8192})};
  small.work = {make_item(Kernel::rmsnorm, Pass::forward, Precision::bf16, {1, 0}, {64})};
  const double items = h100.item(large.work[0], 0).seconds + h100.item(large.work[1], 0).seconds;
  CHECK(h100.segment(large, 0).seconds == Approx(items));
  const double launch_s = h100.launch_s(small, {});
  CHECK(h100.launch_s(large, {}) == Approx(2 * launch_s));
  CHECK(launch_s > 10 * h100.segment(small, 0).seconds);
  CHECK(h100.issued_s(1e-9, launch_s) == Approx(launch_s));
  CHECK(h100.issued_s(1, launch_s) == Approx(1).epsilon(1e-3));
  Op router;
  router.work = {make_item(Kernel::router, Pass::forward, Precision::bf16, {1024, 0}, {64, 8})};
  CHECK(h100.launch_s(router, {}) > 5 * launch_s);  // many kernels
  Layout spread;
  spread.shard = spread.expert = 8;
  CHECK(h100.launch_s(router, spread) > h100.launch_s(router, {}));  // and a wait, of this stack where rows leave
  const StackCost& nemo = cost("hgx-h100", "nemo");
  CHECK(nemo.launch_s(router, spread) == nemo.launch_s(router, {}));  // of others everywhere
  spread.dispatcher = Dispatcher::hybridep;
  CHECK(h100.launch_s(router, spread) == h100.launch_s(router, {}));
  Layout graphs;
  graphs.cuda_graphs = CudaGraphs::full;
  CHECK(h100.launch_s(router, graphs) == 0);
  CHECK(h100.segment(Op{}, 0).seconds == 0);
  const TimeEstimate estimate = h100.segment(large, 0);
  CHECK(
      (estimate.low_s == estimate.seconds && estimate.high_s == estimate.seconds));  // what it is off by is the step's
  CHECK(estimate.shares()[static_cast<std::size_t>(Evidence::published)] == Approx(1));
}

TEST_CASE("more rows never take less time, nor does a faster clock take more") {
  const StackCost& h100 = cost("hgx-h100", "torchtitan");
  Op experts;
  experts.work = {make_item(Kernel::grouped_gemm, Pass::forward, Precision::bf16, {0, 1}, {2048, 1024, 4}),
                  make_item(Kernel::swiglu, Pass::forward, Precision::bf16, {0, 1}, {1024}),
                  make_item(Kernel::rmsnorm, Pass::forward, Precision::bf16, {512, 0}, {1024})};
  for (const double speed : {0.5, 1., 1.5, 4.}) {
    double before = 0;
    for (double rows = 0; rows <= 65536; rows = std::max(1., rows * 1.5)) {
      const double now = h100.segment(experts, rows, {speed}).seconds;
      INFO(rows << " rows, clock " << speed);
      CHECK(now >= before);
      CHECK(now >= h100.segment(experts, rows, {1.1 * speed}).seconds);
      before = now;
    }
  }
  // Many rows are arithmetic's.
  const auto faster = [&](double rows) {
    return h100.segment(experts, rows).seconds / h100.segment(experts, rows, {2}).seconds;
  };
  CHECK(faster(65536) > 1.4);
}

TEST_CASE("steps of a release that nobody measured have wider intervals") {
  const auto of = [](const char* name) { return intervals(cluster("hgx-h100"), name).of("any").at(0); };
  const StepRatios any = of("nemo"), known = of("nemo@25.02"), later = of("nemo@27.01");
  CHECK((any.low == 0.9 && any.high == 1.1));
  CHECK((known.low == any.low && known.high == any.high));
  // Independent errors: their logarithms add as squares do.
  const auto both = [](double a) { return std::exp(std::hypot(std::log(a), std::log(kReleaseDrift))); };
  CHECK(later.high == Approx(both(1.1)));
  CHECK(later.low == Approx(1 / both(0.9)));
}

TEST_CASE("steps have the intervals of their family and of their kind of node") {
  ErrorBounds bounds{.by_regime = {{"MoE, data parallel", {0.8, 1.3}}}, .by_kind = {}, .all = {0.9, 1.1}};
  ClusterSpec mixed = cluster("hgx-h100");
  OtherNodes unknown{mixed, 8, 4};
  unknown.gpu_name = "L40S";  // no steps were published of it
  mixed.others = {unknown};
  const StepIntervals all = intervals(mixed, "torchtitan", bounds);
  const StepRatiosByKind moe = all.of("MoE, data parallel"), dense = all.of("dense, data parallel");
  REQUIRE(moe.size() == 2);
  CHECK((moe[0].low == 0.8 && moe[0].high == 1.3));
  CHECK((dense[0].low == 0.9 && dense[0].high == 1.1));
  CHECK(moe[1].high > moe[0].high);
  CHECK(moe[1].low < moe[0].low);
  CHECK(StepIntervals().of("MoE, data parallel").empty());
}

TEST_CASE("what steps are off by widens all times but those that were seen in steps") {
  const StepRatios off_by{0.9, 1.2};
  TimeEstimate own{2, 1.8, 2.2}, seen = own;
  off_by.widen(own);
  CHECK(own.low_s == Approx(0.9 * 1.8));
  CHECK(own.high_s == Approx(1.2 * 2.2));
  CHECK(own.seconds == 2);
  seen.seen_in_steps = true;
  off_by.widen(seen);
  CHECK((seen.low_s == 1.8 && seen.high_s == 2.2));
  CollectiveEstimate narrow{.relative_spread = 0.1}, wide{.relative_spread = 0.5};
  off_by.widen(narrow), off_by.widen(wide);
  CHECK(narrow.relative_spread == Approx(0.2));
  CHECK(wide.relative_spread == 0.5);
}

TEST_CASE("dispatchers have a factor of their own; over EFA the host sends rows one by one") {
  const StackCost& infiniband = cost("hgx-h100", "torchtitan");
  const auto reached = [](const StackCost& on, Dispatcher dispatcher, double row_bytes, std::int64_t nodes = 4) {
    return on.row_exchange({}, dispatcher, row_bytes, nodes).efficiency;
  };
  CHECK(reached(infiniband, Dispatcher::alltoall, 4096) > 0);
  for (const Dispatcher once : {Dispatcher::hybridep, Dispatcher::uccl})
    CHECK(reached(infiniband, once, 4096) == reached(infiniband, Dispatcher::deepep, 4096));
  const StackCost& efa = cost("aws-p5", "torchtitan");
  CHECK(reached(efa, Dispatcher::hybridep, 4096) == reached(infiniband, Dispatcher::deepep, 4096));
  CHECK(reached(efa, Dispatcher::deepep, 4096, 1) == reached(infiniband, Dispatcher::deepep, 4096));
  // As many rows take as long, whatever is in them, until their bytes do.
  CHECK(reached(efa, Dispatcher::deepep, 8192) == Approx(2 * reached(efa, Dispatcher::deepep, 4096)));
  CHECK(reached(efa, Dispatcher::deepep, 1e6) == reached(infiniband, Dispatcher::deepep, 1e6));
  CHECK(reached(efa, Dispatcher::uccl, 4096) < reached(efa, Dispatcher::deepep, 4096));
  CHECK(efa.row_exchange({}, Dispatcher::deepep, 4096, 4).relative_spread > CollectiveEstimate{}.relative_spread);
}

TEST_CASE("collectives grow with their bytes and never beat the wire; EFA is slower than InfiniBand at the same rate") {
  for (const char* name : {"hgx-h100", "aws-p5", "aws-p4d"}) {
    const ClusterSpec& on = cluster(name);
    for (OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce, OpKind::all_to_all,
                        OpKind::broadcast, OpKind::send})
      for (const auto& [ranks, nodes] : {std::pair{8, 1}, {64, 8}, {8, 8}}) {
        if (kind == OpKind::send && ranks != 8) continue;
        const std::int64_t members = kind == OpKind::send ? 2 : ranks,
                           over = kind == OpKind::send ? std::min(2, nodes) : nodes;
        double before = 0;
        for (double bytes = 1e5; bytes < 1e10; bytes *= 10) {
          const CollectiveEstimate estimate = cost(name, "torchtitan").collective(kind, bytes, members, over);
          const AllReduceMachine machine = {on.nvswitch_Bps, on.nic_per_gpu_Bps()};
          const double Bps = over > 1 ? machine.nic_Bps : machine.nvlink_Bps;
          const double wire = kind == OpKind::all_reduce
                                  ? bytes * all_reduce_wire_s(estimate.algorithm, machine, members, over)
                                  : (kind == OpKind::send ? bytes : pool_bytes(kind, bytes, members, over)) / Bps;
          const double seconds = estimate.latency_s + wire / estimate.efficiency;
          INFO(name << " " << to_string(kind) << " " << members << " on " << over << ", " << bytes);
          CHECK(estimate.latency_s > 0);
          CHECK(seconds > before);
          CHECK(estimate.efficiency <= 1);
          before = seconds;
        }
      }
  }
  CHECK(cost("aws-p5", "torchtitan").collective(OpKind::all_reduce, 1e8, 64, 8).efficiency <
        cost("hgx-h100", "torchtitan").collective(OpKind::all_reduce, 1e8, 64, 8).efficiency);
  CHECK(cost("hgx-h100", "torchtitan").collective(OpKind::all_gather, 1e8, 1, 1).latency_s == 0);
}

TEST_CASE("a cluster's network latency counts hop by hop, and the fabric that it names by its own constants") {
  const auto estimate = [](const std::string& name, auto change) {
    ClusterSpec changed = cluster(name);
    change(changed);
    const StackCost on = test::stack_cost(changed, "torchtitan");
    return on.collective(OpKind::all_gather, 256e6, 64, 8);
  };
  const CollectiveEstimate usual = estimate("hgx-h100", [](ClusterSpec&) {}),
                           late = estimate("hgx-h100", [](ClusterSpec&c) { c.nic_latency_s = 1e-3; });
  const double network =
      estimate("hgx-h100", [](ClusterSpec& c) { c.nic_latency_s = 2e-3; }).latency_s - late.latency_s;
  CHECK(network > 0);  // a millisecond more for each of seven hops, times the stack's factor of its network
  CHECK(late.latency_s - usual.latency_s == Approx(network * (1e-3 - 2.7e-6) / 1e-3));
  const CollectiveEstimate plain = estimate("aws-p5", [](ClusterSpec&) {}),
                           fleet =
                               estimate("aws-p5", [](ClusterSpec&c) { c.fabric = "HF cluster (EFA p5, recalled)"; });
  CHECK(fleet.efficiency < plain.efficiency);
  CHECK_THROWS_WITH(estimate("aws-p5", [](ClusterSpec& c) { c.fabric = "HF"; }),
                    Contains("nic.fabric: found 'HF'") && Contains("'HF cluster (EFA p5, recalled)'"));
}

TEST_CASE("a group that its nodes do not share evenly costs about what one that they do costs") {
  const StackCost& h100 = cost("hgx-h100", "torchtitan");
  const auto transfer = [&](std::int64_t ranks, std::int64_t nodes) {
    const CollectiveEstimate estimate = h100.collective(OpKind::all_gather, 1e9, ranks, nodes);
    return pool_bytes(OpKind::all_gather, 1e9, ranks, nodes) / estimate.efficiency;
  };
  CHECK(transfer(20, 3) < 1.35 * transfer(24, 3));
  CHECK(transfer(36, 5) < 1.35 * transfer(40, 5));
}

TEST_CASE("nodes of every kind have times of their own GPU and adapters") {
  ClusterSpec mixed = cluster("hgx-h100");
  OtherNodes a100{cluster("aws-p4d"), 8, 4}, slow{mixed, 12, 4};
  slow.nic_Bps /= 4;
  mixed.others = {a100, slow};
  const StackCost both = test::stack_cost(mixed, "torchtitan");
  const auto same = [](const OpCost& a, const OpCost& b) {
    const WorkItem product = bf16(Kernel::gemm, {8192, 8192});
    CHECK(a.item(product, 0).seconds == b.item(product, 0).seconds);
    const CollectiveEstimate x = a.collective(OpKind::all_gather, 1e9, 64, 8),
                             y = b.collective(OpKind::all_gather, 1e9, 64, 8);
    CHECK(x.latency_s == y.latency_s);
    CHECK(x.efficiency == y.efficiency);
  };
  same(both.on(0), cost("hgx-h100", "torchtitan"));
  for (std::size_t kind : {1, 2}) same(both.on(kind), test::stack_cost(mixed.all_of(kind), "torchtitan"));
  CHECK(both.on(1).item(bf16(Kernel::gemm, {8192, 8192}), 0).seconds >
        2 * both.item(bf16(Kernel::gemm, {8192, 8192}), 0).seconds);
}

TEST_CASE("whether gathers and reductions share a communicator is the stack's, whoever passes its times on") {
  for (const auto& [stack, separate] : {std::pair{"torchtitan", false}, {"windtunnel-train", true}}) {
    const StackCost times = cost("hgx-h100", stack);
    CHECK(times.traits().separate_reduce_group == separate);
    CHECK(RememberedCost(times).traits().separate_reduce_group == separate);
    CHECK(ScaledCost(times, {}).traits().separate_reduce_group == separate);
  }
}

TEST_CASE("a cluster without a data sheet of its GPU has no such times") {
  CHECK_THROWS_WITH(test::stack_cost(cluster("local-2core"), "torchtitan"),
                    Contains("needs a GPU with a known data sheet"));
}

TEST_CASE("points of this machine stand for themselves and correct published times of all other shapes") {
  constexpr double kSlower = 1.3;
  const WorkItem wide = bf16(Kernel::gemm, {8192, 8192}), narrow = bf16(Kernel::gemm, {4096, 2048});
  const WorkItem other = bf16(Kernel::gemm, {11008, 4096}), norm = bf16(Kernel::rmsnorm, {4096});
  const StackCost& published = cost("hgx-h100", "torchtitan");
  BenchmarkTimes times = test::published().benchmarks();
  const StackUse use = stack_use(test::published().stack_fit().model(), traits_of(read_stack("torchtitan"), "H100"));
  const double factor = use.constants[StepConstant::products];
  MachineData own;
  own.row_tile = 128;
  for (const WorkItem& item : {wide, narrow}) {
    TimePoint point;
    point.rows = 8192;
    point.seconds = kSlower * published.item(item, 0).seconds / factor;
    point.low_s = point.high_s = point.seconds;
    point.evidence = Evidence::measured;
    own.table[{item.kernel, item.pass, item.precision, item.dims}] = {point};
  }
  times.measured = std::make_shared<MachineModel>(own);
  const StackCost measured(cluster("hgx-h100"), use, times);
  const auto over_published = [&](const WorkItem& item) {
    return measured.item(item, 0).seconds / published.item(item, 0).seconds;
  };
  CHECK(over_published(wide) == Approx(kSlower));
  CHECK(measured.item(wide, 0).shares()[static_cast<std::size_t>(Evidence::measured)] == Approx(1));
  CHECK(over_published(other) == Approx(kSlower));
  CHECK(measured.item(other, 0).shares()[static_cast<std::size_t>(Evidence::published)] == Approx(1));
  CHECK(over_published(make_item(Kernel::gemm, Pass::backward, Precision::bf16, {8192, 0}, {11008, 4096})) ==
        Approx(kSlower));
  CHECK(over_published(norm) == 1);  // nothing of its class was measured
  WorkItem routed = wide;
  routed.rows = {0, 1};  // as many as are received
  CHECK(measured.explain(routed, 8192).source.find("published") == std::string::npos);
  CHECK(measured.explain(routed, 1).source.find("own points") != std::string::npos);
  // Points that agree have no spread.
  const TimeEstimate corrected = measured.item(other, 0);
  CHECK(corrected.low_s == Approx(corrected.seconds));
  CHECK(corrected.high_s == Approx(corrected.seconds));
}

TEST_CASE("what a data sheet alone says is derived, and far less sure than what is known of the chip") {
  const WorkItem product = bf16(Kernel::gemm, {8192, 8192});
  const auto with = [](const char* gpu) {
    ClusterSpec all = cluster("hgx-h100");
    all.gpu_name = gpu;
    return all;
  };
  const auto on = [&](const char* gpu) { return test::stack_cost(with(gpu), "torchtitan"); };
  const auto width = [&](const char* gpu) {
    const StepRatios off_by = intervals(with(gpu), "torchtitan").of("any").at(0);
    return off_by.high - off_by.low;
  };
  for (const char* gpu : {"L40S", "A30", "H20"}) {
    INFO(gpu);
    CHECK(width(gpu) > 1.5 * width("H100-SXM-80GB"));
    CHECK(on(gpu).item(product, 0).shares()[static_cast<std::size_t>(Evidence::derived)] == Approx(1));
    CHECK(on(gpu).explain(product, 0).points == 0);
  }
  CHECK(width("H200") == Approx(width("H100-SXM-80GB")));  // the same chip
  // Steps were published on B200, products were not: scaled from another chip.
  CHECK(on("B200").item(product, 0).shares()[static_cast<std::size_t>(Evidence::derived)] == Approx(1));
}

TEST_CASE("times of a stack that nobody measured are derived") {
  const WorkItem product = bf16(Kernel::gemm, {8192, 8192});
  const auto evidence = [&](const StackCost& on, Evidence kind) {
    return on.item(product, 0).shares()[static_cast<std::size_t>(kind)];
  };
  const StackCost& known = cost("hgx-h100", "torchtitan");
  const test::TempDirectory folder;
  test::write_bytes(folder / "unknown.yaml", "name: unknown\nlayouts: all\nsource: none\n");
  const StackCost unknown_stack = test::stack_cost(cluster("hgx-h100"), (folder / "unknown.yaml").string());
  CHECK(evidence(known, Evidence::published) == Approx(1));
  CHECK(evidence(unknown_stack, Evidence::derived) == Approx(1));
}

TEST_CASE("the host's copies and updates take their bytes over the rates of its link and memory") {
  const auto seconds = [](const char* on, Kernel kernel, double rows) {
    return cost(on, "torchtitan").item(make_item(kernel, Pass::forward, Precision::fp32, {rows, 0}), 0).seconds;
  };
  CHECK(seconds("hgx-h100", Kernel::host_copy, 50e9) == Approx(1));        // PCIe Gen5
  CHECK(seconds("aws-p4d", Kernel::host_copy, 50e9) == Approx(2));         // Gen4
  CHECK(seconds("hgx-h100", Kernel::host_adamw, 50e9 / 28) == Approx(1));  // a quarter of a socket's memory
  const auto host = [](const char* gpu) { return host_sheet(*data_sheet(gpu)); };
  CHECK((host("GH200").link_Bps == 400e9 && host("GB200").link_Bps == 400e9));
  CHECK((host("GH200").memory_Bps == 200e9 && host("GB200").memory_Bps == 100e9));
  CHECK(host("V100-SXM").link_Bps == 12.5e9);
  const TimeBasis basis =
      cost("hgx-h100", "torchtitan").explain(make_item(Kernel::host_copy, Pass::forward, Precision::fp32, {1, 0}), 0);
  CHECK_THAT(basis.source, Contains("assumed"));
}

TEST_CASE("kernels of a new design reach less of its data sheet; a variant of a measured one computes like it") {
  DataSheet variant = *built_in_data_sheet("H100-SXM"), next = variant;
  variant.name = "a variant with more memory bandwidth", variant.memory_Bps *= 1.5;
  next.name = "a next design", next.flops *= 2;
  const StepModel& steps = PublishedConstants::get().steps;
  const auto constant = [&](const StepTraits& traits, StepConstant of) { return steps.constants(traits)[of]; };
  const StackSpec stack = read_stack("torchtitan");
  const StepTraits known = traits_of(stack, "H100-SXM"), alike = traits_of(stack, know_data_sheet(variant)),
                   fresh = traits_of(stack, know_data_sheet(next));
  REQUIRE((!known.by_data_sheet && alike.by_data_sheet && fresh.by_data_sheet));
  StepTraits measured = fresh;
  measured.by_data_sheet = false;
  for (const StepConstant kernel : {StepConstant::products, StepConstant::attention, StepConstant::memory}) {
    CHECK(constant(alike, kernel) == constant(known, kernel));
    CHECK(constant(fresh, kernel) > 1.2 * constant(measured, kernel));
  }
  CHECK(constant(fresh, StepConstant::network) == constant(measured, StepConstant::network));
}
