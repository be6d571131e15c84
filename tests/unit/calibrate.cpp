// Calibration of ops from traces and of collectives, and its bad input.
#include "sim/cost/calibrate/calibrate.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "sim/cost/ops/remembered_cost.hpp"
#include "sim/program/compose/compose.hpp"
#include "tests/fixtures/synthetic_profile.hpp"

using namespace wt;

namespace {

Measurement trace(const std::string& op, std::int64_t group, std::int64_t microbatch, double seconds, double rows = 0) {
  Measurement m;
  m.kernel = "op:" + op;
  m.pass = "";
  m.dtype = "fp32";
  m.clock = "thread_cpu";
  m.shape = {{"rows", static_cast<std::int64_t>(rows)},
             {"seq", 64},
             {"microbatch", microbatch},
             {"d_model", 64},
             {"n_heads", 4},
             {"kv_heads", 2},
             {"head_dim", 16},
             {"ffn", 512},
             {"experts", 4},
             {"top_k", 2},
             {"vocab", 256},
             {"layers", 2},
             {"expert_ranks", 2},
             {"replicate", 1},
             {"shard", 2},
             {"group", group}};
  m.samples = {seconds};
  m.evidence = {Evidence::measured, "synthetic trace"};
  return m;
}

/// A synthetic machine that also has grouped products, permutes and AdamW.
Profile machine() {
  Profile p = synthetic_profile();
  const auto add = [&](Kernel kernel, std::array<std::int64_t, 4> dims, auto seconds) {
    for (double rows : {64., 512., 4096.}) {
      const WorkItem item = make_item(kernel, Pass::forward, Precision::fp32, {rows, 0}, dims);
      p.measurements.push_back(timed(item, seconds(item)));
    }
  };
  add(Kernel::grouped_gemm, {1024, 64, 2, 0}, [](const WorkItem& i) { return i.flops(0) / 40e9; });
  add(Kernel::permute, {64}, [](const WorkItem& i) { return moved_s(i); });
  add(Kernel::adamw, {}, [](const WorkItem& i) { return moved_s(i); });
  return p;
}

double experts_s(const MachineModel& model, double rows) {
  ModelSpec spec;
  spec.layers = 2, spec.d_model = 64, spec.heads = 4, spec.kv_heads = 2, spec.head_dim = 16, spec.ffn = 512;
  spec.experts = 4, spec.top_k = 2, spec.vocab = 256;
  const ProgramSet set =
      build_program_set(spec, Layout{1, 2, 2, 1, Recompute::none, {}}, {64, 1, Precision::fp32, true});
  for (const OpInstance& each : unroll(set.programs[0]))
    if (each.op->action == Action::experts && each.op->direction == Direction::forward)
      return model.items_of(*each.op, rows).seconds;
  return 0;
}

Measurement collective(const std::string& kind, std::int64_t bytes, std::int64_t ranks, std::int64_t nodes,
                       double wall_s, double cpu_s = -1) {
  Measurement m;
  m.kernel = kind;
  m.pass = "";
  m.shape = {{"bytes", bytes}, {"ranks", ranks}, {"nodes", nodes}};
  m.samples = {wall_s};
  if (cpu_s >= 0) m.counters["cpu_s"] = cpu_s;
  m.evidence = {Evidence::measured, "synthetic"};
  return m;
}

}  // namespace

TEST_CASE("factor and overhead of an op are recovered from traces of several sizes") {
  Profile p = machine();
  const MachineModel items = calibrate({p}).model;
  for (double rows : {100., 300., 900.})
    p.measurements.push_back(trace("experts.fwd", 3, 1, 40e-6 + 1.3 * experts_s(items, rows), rows));
  const CalibrationResult result = calibrate({p});
  const OpFactor factor = result.model.data().ops.at({Action::experts, Direction::forward, Group::expert});
  CHECK(factor.factor == Approx(1.3).epsilon(1e-6));
  CHECK(factor.overhead_s == Approx(40e-6).epsilon(1e-6));
  CHECK(result.residuals.back().name == "experts.fwd/expert");
  CHECK(result.residuals.back().p90_error < 1e-6);
  CHECK(result.notes.empty());
}

TEST_CASE("what ranks that shared cores took is what one takes alone, and the crowding that was measured") {
  Profile p = machine();
  const MachineModel items = calibrate({p}).model;
  p.measurements.push_back(trace("experts.fwd", 3, 1, 0, 200));
  p.measurements.push_back(trace("experts.fwd", 3, 1, 1.1 * (40e-6 + 1.5 * experts_s(items, 900)), 900));
  p.measurements[p.measurements.size() - 2].samples = {1.1 * (40e-6 + 1.5 * experts_s(items, 200))};
  for (std::size_t i : {1, 2}) p.measurements[p.measurements.size() - i].shape["host_ranks"] = 4;
  Measurement step;
  step.kernel = "step_computation", step.pass = "", step.shape = {{"ranks", 4}}, step.samples = {0.5};
  step.counters = {{"issuing_thread_cpu_s", 0.22}, {"alone_cpu_s", 0.2}};
  step.evidence = {Evidence::measured, "synthetic"};
  p.measurements.push_back(step);
  const CalibrationResult result = calibrate({p});
  const MachineModel& model = result.model;
  CHECK(model.traits().crowding_of(4) == Approx(1.1));
  CHECK(model.traits().crowding_of(1) == 1);
  const OpFactor& factor = model.data().ops.at({Action::experts, Direction::forward, Group::expert});
  CHECK(factor.factor == Approx(1.5).epsilon(1e-6));
  CHECK(factor.overhead_s == Approx(40e-6).epsilon(1e-6));
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0], Catch::Contains("10.0 % longer where 4 ranks share the cores"));
  p.measurements.back().counters.erase("alone_cpu_s");
  CHECK_THROWS_WITH(calibrate({p}), Catch::Contains("step_computation") && Catch::Contains("alone_cpu_s"));
  p.measurements.back() = step;
  p.measurements.back().counters["issuing_thread_cpu_s"] = 0.19;  // noise: never faster
  CHECK(calibrate({p}).model.traits().crowding_of(4) == 1);
  p.fingerprint["host"] = "asynchronous";
  CHECK(calibrate({p}).model.traits().crowding_of(4) == 1);
}

TEST_CASE("an op costs the mean of its times, less what stalled; profiles of the same thing are pooled, counters too") {
  Profile p = machine(), again;
  const MachineModel items = calibrate({p}).model;
  const double seconds = experts_s(items, 200);
  Measurement skewed = trace("experts.fwd", 3, 1, 0, 200);
  skewed.samples.assign(80, seconds);
  skewed.samples.insert(skewed.samples.end(), 19, 2 * seconds);
  skewed.samples.push_back(50 * seconds);  // stalled
  skewed.samples.push_back(0.5 * seconds);
  p.measurements.push_back(skewed);
  // 101 samples less three at either end: 78 of one and 17 of two are left.
  CHECK(calibrate({p}).model.data().ops.begin()->second.factor == Approx((78 + 17 * 2) / 95.0).epsilon(1e-6));
  p.measurements.back().samples.assign(8, seconds);
  p.measurements.back().samples[5] = 40 * seconds;  // of few samples one stalled
  CHECK(calibrate({p}).model.data().ops.begin()->second.factor == Approx(1).epsilon(1e-6));
  p.measurements.back().kernel = "op:optimizer.fwd", p.measurements.back().shape["group"] = 0;
  CHECK(calibrate({p}).model.traits().variation == 0);  // nor is it a usual difference

  Measurement step;
  step.kernel = "step_computation", step.pass = "", step.shape = {{"ranks", 4}}, step.samples = {0.5};
  step.counters = {{"issuing_thread_cpu_s", 0.22}, {"alone_cpu_s", 0.2}};
  step.evidence = {Evidence::measured, "synthetic"};
  p.measurements.push_back(step);
  again.fingerprint = p.fingerprint;
  step.counters = {{"issuing_thread_cpu_s", 0.34}, {"alone_cpu_s", 0.2}};
  again.measurements = {step};
  CHECK(calibrate({p, again}).model.traits().crowding_of(4) == Approx(1.4));
}

TEST_CASE("how ops vary from call to call is told by neighbours: slow phases and ops whose rows change do not count") {
  Profile p = machine();
  const MachineModel items = calibrate({p}).model;
  Measurement steady = trace("optimizer.fwd", 0, 1, 0), routed = trace("experts.fwd", 3, 1, 0, 200);
  steady.samples.clear(), routed.samples.clear();
  for (int i = 0; i < 200; ++i) {
    const double phase =
        i < 100 ? 1 : 1.5;  // +-10 % around each phase's time: successive differences of 20 %, squared and halved 2 %
    steady.samples.push_back(1e-3 * phase * (i % 2 ? 1.1 : 0.9));
    routed.samples.push_back(1e-3 * (i % 2 ? 3 : 1));
  }
  p.measurements.insert(p.measurements.end(), {steady, routed});
  const double rms = std::sqrt((1 + 1.5 * 1.5) / 2) / 1.25;  // of the two phases' differences over the mean
  const MachineModel model = calibrate({p}).model;
  CHECK(model.traits().variation == Approx(0.2 / std::sqrt(2) * rms).epsilon(0.02));
  CHECK(machine_from_json(to_json(model.data()), "test").variation == model.traits().variation);
  CHECK(items.traits().variation == 0);
  CHECK_THAT(calibrate({p}).notes.back(), Catch::Contains("from call to call"));

  std::vector<Profile> profiles(
      10, machine());  // each steady, at another pace: what lies between them is no call to the next
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    steady.samples.assign(8, 1e-3 * (i % 2 ? 1.2 : 0.8));
    profiles[i].measurements.push_back(steady);
  }
  CHECK(calibrate(profiles).model.traits().variation == 0);
}

TEST_CASE("products of a backward pass that were timed apart make it up where it was not measured itself") {
  Profile p = synthetic_profile();
  const auto apart = [&](const char* kernel, double rows, double seconds) {
    Measurement m = timed(gemm(rows, 64, 128), seconds);
    m.kernel = kernel, m.pass = "backward";
    p.measurements.push_back(m);
  };
  apart("gemm_rows", 256, 2e-4), apart("gemm_weight", 256, 3e-4);
  apart("gemm_rows", 512, 4e-4);  // alone: nothing follows
  apart("gemm_rows", 1024, 8e-4), apart("gemm_weight", 1024, 9e-4);
  WorkItem backward = gemm(1024, 64, 128);
  backward.pass = Pass::backward;
  p.measurements.push_back(timed(backward, 2e-3));
  const CalibrationResult result = calibrate({p});
  const auto& points = result.model.data().table.at({Kernel::gemm, Pass::backward, Precision::fp32, {64, 128}});
  REQUIRE(points.size() == 2);
  CHECK(points[0].rows == 256);
  CHECK(points[0].seconds == Approx(5e-4));
  CHECK(points[0].evidence == Evidence::derived);
  CHECK(points[0].root == Evidence::measured);
  CHECK(points[1].seconds == Approx(2e-3));
  CHECK(points[1].evidence == Evidence::measured);
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0], Catch::Contains("left out: 1 gradient(s)"));
}

TEST_CASE("one size gives a factor alone, recompute borrows it, and the segment's time has it") {
  Profile p = machine();
  const MachineModel items = calibrate({p}).model;
  p.measurements.push_back(trace("experts.fwd", 3, 1, 1.7 * experts_s(items, 200), 200));
  const MachineModel model = calibrate({p}).model;
  const OpFactor factor = model.data().ops.at({Action::experts, Direction::forward, Group::expert});
  CHECK(factor.factor == Approx(1.7));
  CHECK(factor.overhead_s == 0);
  Op op;
  op.action = Action::experts;
  op.group = Group::expert;
  op.work = {gemm(256, 64, 64)};
  CHECK(model.segment(op, 0).seconds == Approx(1.7 * model.item(op.work[0], 0).seconds));
  const TimeEstimate item = model.item(op.work[0], 0), segment = model.segment(op, 0);
  CHECK(segment.low_s / segment.seconds == Approx(factor.low_ratio * item.low_s / item.seconds));
  CHECK(segment.high_s / segment.seconds == Approx(factor.high_ratio * item.high_s / item.seconds));
  CHECK(segment.shares() == only(Evidence::measured));
  CHECK(segment.seen_in_steps);
  op.direction = Direction::recompute;
  CHECK(model.segment(op, 0).seconds == Approx(1.7 * model.item(op.work[0], 0).seconds));
  op.direction = Direction::backward;
  CHECK(model.segment(op, 0).seconds == Approx(model.item(op.work[0], 0).seconds));
  CHECK_FALSE(model.segment(op, 0).seen_in_steps);
}

TEST_CASE("a factor that nobody believes is noted, as is a trace whose items are unknown") {
  Profile p = machine();
  const MachineModel items = calibrate({p}).model;
  p.measurements.push_back(trace("experts.fwd", 3, 1, 5 * experts_s(items, 200), 200));
  p.measurements.push_back(trace("attention.fwd", 2, 1, 1e-3));
  const auto notes = calibrate({p}).notes;
  REQUIRE(notes.size() == 2);
  CHECK_THAT(notes[0], Catch::Contains("attention.fwd/dense") && Catch::Contains("windtunnel bench kernels"));
  CHECK_THAT(notes[1], Catch::Contains("experts.fwd/expert") && Catch::Contains("5.00"));
}

TEST_CASE("a host op without items costs what it took") {
  Profile p = machine();
  p.measurements.push_back(trace("load_batch.fwd", 0, 1, 3e-4));
  Op op;
  op.action = Action::load_batch;
  CHECK(calibrate({p}).model.segment(op, 0).seconds == Approx(3e-4));
}

TEST_CASE("collectives by CPU give latency and CPU seconds back, and their sum is the wall time") {
  Profile p = synthetic_profile();  // four ranks share two cores: each CPU second takes two
  for (std::int64_t bytes : {1024, 65536, 1048576, 16777216}) {
    const double cpu = 20e-6 + static_cast<double>(bytes) * 1e-9;
    p.measurements.push_back(collective("all_gather", bytes, 4, 1, 80e-6 + 2 * cpu, cpu));
  }
  const MachineModel model = calibrate({p}).model;
  const CollectiveEstimate estimate = model.collective(OpKind::all_gather, 4e6, 4, 1);
  CHECK(estimate.latency_s == Approx(80e-6).epsilon(1e-6));
  CHECK(estimate.cpu_s == Approx(20e-6 + 4e-3).epsilon(1e-6));
  CHECK(estimate.evidence == Evidence::measured);
  const CollectiveEstimate two = model.collective(OpKind::all_gather, 4e6, 2, 1);
  CHECK(two.cpu_s == Approx(20e-6 / 3 + 4e-3 * (0.5 / 0.75)).epsilon(1e-6));
  CHECK(two.evidence == Evidence::derived);
  CHECK_THROWS_WITH(model.collective(OpKind::reduce_scatter, 4e6, 4, 1),
                    Catch::Contains("nothing is derived from another"));
  CHECK(model.collective(OpKind::reduce_scatter, 4e6, 1, 1).latency_s == 0);
  const CollectiveEstimate restore =
      model.collective(OpKind::broadcast, 4e6, 4, 1);  // as a gather of (n-1)/n of its buffer
  CHECK(restore.cpu_s == Approx(20e-6 + 4e-3 / 0.75).epsilon(1e-6));
  CHECK(restore.evidence == Evidence::derived);
}

namespace {

double alone_s(const MachineModel& model, OpKind kind, double bytes, std::int64_t ranks, std::int64_t nodes) {
  const CollectiveEstimate estimate = model.collective(kind, bytes, ranks, nodes);
  const CollectiveMachine& machine = model.data().collectives.machine;
  return estimate.latency_s + wire_s({kind, bytes, {ranks, nodes}, machine}, estimate.algorithm) / estimate.efficiency;
}

/// H100 over 8x400 Gb/s.
Profile gpus() {
  Profile gpu = synthetic_profile();
  gpu.fingerprint["host"] = "asynchronous";
  gpu.fingerprint["nvlink_Bps"] = "450e9", gpu.fingerprint["nic_Bps"] = "50e9";
  return gpu;
}

/// `kernel` over nodes of 8, by a latency and a rate.
void add_collectives(Profile& profile, const char* kernel, std::int64_t nodes, double latency_s, double Bps) {
  for (std::int64_t bytes : {1024, 64 << 20, 1 << 30})
    profile.measurements.push_back(
        collective(kernel, bytes, 8 * nodes, nodes, latency_s + static_cast<double>(bytes) / Bps));
}

}  // namespace

TEST_CASE("a profile's collectives are reproduced, never beat the wire, and get dearer with nodes") {
  const MachineModel model = calibrate({read_profile("tests/data/h100-profile.json")}).model;
  CHECK(alone_s(model, OpKind::all_reduce, 1073741824, 8, 1) == Approx(4029.4e-6).epsilon(1e-3));
  CHECK(alone_s(model, OpKind::all_gather, 256e6, 8, 1) == Approx(896.5e-6).epsilon(1e-3));
  CHECK(alone_s(model, OpKind::all_gather, 1073741824, 512, 64) ==
        Approx(1073741824 * (511. / 512) / (.563 * 388e9)).epsilon(1e-3));
  for (OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_to_all, OpKind::broadcast})
    for (double bytes : {1e4, 1e6, 3e8, 5e9})
      for (std::int64_t nodes : {2, 4, 16, 48, 384})
        CHECK(alone_s(model, kind, bytes, 8 * nodes, nodes) > pool_bytes(kind, bytes, 8 * nodes, nodes) / 48.5e9);
}

TEST_CASE("broadcasts and messages go by their own measurement, else as fast as gathers") {
  Profile gpu = gpus();
  add_collectives(gpu, "all_gather", 2, 40e-6, 320e9 * 16 / 15);  // by 8 NICs a node, (n-1)/n of the buffer over each
  const MachineModel as_gather = calibrate({gpu}).model;
  CHECK(alone_s(as_gather, OpKind::all_gather, 1 << 30, 16, 2) ==
        Approx(40e-6 + (1 << 30) / (320e9 * 16 / 15)).epsilon(1e-6));
  CHECK(as_gather.collective(OpKind::all_gather, 1 << 30, 16, 2).evidence == Evidence::measured);
  CHECK(alone_s(as_gather, OpKind::broadcast, 1 << 30, 16, 2) ==
        Approx(16. / 15 * alone_s(as_gather, OpKind::all_gather, 1 << 30, 16, 2)).epsilon(0.1));
  CHECK(as_gather.collective(OpKind::broadcast, 1 << 30, 16, 2).evidence == Evidence::derived);
  add_collectives(gpu, "broadcast", 2, 30e-6, 240e9);
  add_collectives(gpu, "send_recv", 2, 20e-6, 45e9);
  const MachineModel model = calibrate({gpu}).model;
  CHECK(alone_s(model, OpKind::broadcast, 1 << 30, 16, 2) == Approx(30e-6 + (1 << 30) / 240e9).epsilon(1e-6));
  CHECK(model.collective(OpKind::broadcast, 1 << 30, 16, 2).evidence == Evidence::measured);
  CHECK(alone_s(model, OpKind::send, 1 << 30, 2, 2) == Approx(20e-6 + (1 << 30) / 45e9).epsilon(1e-6));
  CHECK(model.collective(OpKind::send, 1 << 30, 2, 2).evidence == Evidence::measured);
  CHECK(to_json(machine_from_json(to_json(model.data()), "m.json")) == to_json(model.data()));
}

TEST_CASE("what is measured here puts aside what was published, and carries over to other numbers of nodes") {
  Profile slow = gpus();
  add_collectives(slow, "all_gather", 4, 500e-6, 100e9);
  const MachineModel model = calibrate({read_profile("tests/data/h100-profile.json"), slow}).model;
  CHECK(alone_s(model, OpKind::all_gather, 1 << 30, 32, 4) == Approx(500e-6 + (1 << 30) / 100e9).epsilon(1e-6));
  CHECK(alone_s(model, OpKind::all_gather, 1 << 30, 64, 8) > 0.9 * (1 << 30) / 100e9);
  CHECK(model.collective(OpKind::all_gather, 1 << 30, 64, 8).root == Evidence::measured);
}

TEST_CASE("all-reduces four times slower make gathers over the same links slower, and that is said") {
  Profile gpu = gpus();
  gpu.fingerprint["device"] = "H100-SXM";
  const MachineModel usual = calibrate({gpu}).model;
  add_collectives(gpu, "all_reduce", 4, 400e-6, 45e9);
  const MachineModel model = calibrate({gpu}).model;
  const double gather_s = alone_s(model, OpKind::all_gather, 1 << 30, 32, 4);
  CHECK(gather_s > 2 * alone_s(usual, OpKind::all_gather, 1 << 30, 32, 4));
  CHECK(model.collective(OpKind::all_gather, 1 << 30, 32, 4).evidence == Evidence::derived);
  CHECK(alone_s(model, OpKind::all_gather, 1 << 30, 8, 1) == Approx(alone_s(usual, OpKind::all_gather, 1 << 30, 8, 1)));
  std::string said;
  for (const std::string& each : model.traits().basis_of_collectives) said += each + "\n";
  CHECK_THAT(said, Catch::Contains("all-reduces over nodes: 3 points of the profile (measured, 4 nodes)"));
  CHECK_THAT(said, Catch::Contains("gathers, scatters, broadcasts and messages over nodes: none in the profile") &&
                       Catch::Contains("0.25 times what is usual, as measured all-reduces over nodes reached"));
  CHECK_THAT(said, Catch::Contains("all-to-alls inside a node: none in the profile; published ones."));
  CHECK(usual.traits().basis_of_collectives.empty());
  CHECK(RememberedCost(model).traits().basis_of_collectives == model.traits().basis_of_collectives);
}

TEST_CASE("calibration refuses what it cannot use, naming it") {
  CHECK_THROWS_WITH(calibrate({Profile{}}), Catch::Contains("found no measurement"));
  Profile cpu = synthetic_profile(), gpu = synthetic_profile();
  gpu.fingerprint["host"] = "asynchronous";
  CHECK_THROWS_WITH(calibrate({cpu, gpu}), Catch::Contains("two machine models"));
  Profile lacking = cpu;
  lacking.measurements[0].shape.erase("k");
  CHECK_THROWS_WITH(calibrate({lacking}), Catch::Contains("with 'k'"));
  Profile milliseconds = cpu;
  milliseconds.measurements[0].unit = "ms";
  CHECK_THROWS_WITH(calibrate({milliseconds}), Catch::Contains("allowed 's'"));
  Profile bare = cpu;
  bare.measurements.push_back(collective("all_gather", 1024, 4, 1, 1e-3));
  CHECK_THROWS_WITH(calibrate({bare}), Catch::Contains("cpu_s"));
  gpu.measurements.push_back(collective("all_gather", 1024, 8, 1, 1e-3));
  CHECK_THROWS_WITH(calibrate({gpu}), Catch::Contains("nvlink_Bps"));
}

TEST_CASE("a host's name under the key host leaves the decision to the clocks") {
  Profile p = synthetic_profile();
  p.fingerprint["host"] = "node17";
  CHECK(calibrate({p}).model.traits().synchronous_host);
  CHECK(calibrate({p}).model.traits().communication_slowdown.share == 0);  // there they share the cores
  for (Measurement& m : p.measurements) m.clock = "device";
  CHECK_FALSE(calibrate({p}).model.traits().synchronous_host);
}

TEST_CASE("communication takes from a GPU's computation what was published") {
  Profile p = synthetic_profile();
  p.fingerprint["host"] = "asynchronous";
  const CommunicationSlowdown slowdown = calibrate({p}).model.traits().communication_slowdown;
  CHECK(1 / (1 - slowdown.share) == Approx(1.189));  // arXiv 2507.03114: the mean and the most
  CHECK(1 / (1 - slowdown.high) == Approx(1.4));
  CHECK(slowdown.low < slowdown.share);
  CHECK(slowdown.evidence == Evidence::published);
}

TEST_CASE("products timed beside collectives replace the published slowdown, on GPUs alone") {
  Profile p = synthetic_profile();
  for (const auto& [name, beside_s] : {std::pair{"gemm_beside_all_gather", 1.25e-3},
                                       {"gemm_beside_all_reduce", 2e-3},
                                       {"gemm_beside_broadcast", 1e-3}}) {
    Measurement m;
    m.kernel = name, m.pass = "", m.clock = "device", m.shape = {{"bytes", 1 << 20}, {"ranks", 8}},
    m.samples = {beside_s};
    m.counters = {{"gemm_alone_s", 1e-3}, {"gemm_beside_s", beside_s}};
    m.evidence = {Evidence::measured, "synthetic"};
    p.measurements.push_back(m);
  }
  p.fingerprint["host"] = "asynchronous";
  const CalibrationResult gpu = calibrate({p});
  const CommunicationSlowdown slowdown = gpu.model.traits().communication_slowdown;
  CHECK(slowdown.share == Approx(0.2));  // 1 - 1 / 1.25, between none and a half
  CHECK(slowdown.low < slowdown.share);
  CHECK(slowdown.high > slowdown.share);
  CHECK(slowdown.high <= 0.5);
  CHECK(slowdown.evidence == Evidence::measured);
  CHECK(gpu.notes.empty());
  p.fingerprint["host"] = "synchronous";
  CHECK(calibrate({p}).model.traits().communication_slowdown.share == 0);
}

TEST_CASE("groups at work at the same time share the host's cores") {
  Profile p = synthetic_profile();
  for (double bytes : {1e5, 1e6, 4e6, 16e6}) {
    Measurement m = collective("all_reduce", static_cast<std::int64_t>(bytes), 2, 1, 1e-4 + 2 * 1e-9 * bytes);
    m.shape["groups"] = 2;  // four ranks on two cores
    m.counters["cpu_s"] = 1e-9 * bytes;
    p.measurements.push_back(m);
  }
  const CollectiveEstimate estimate = calibrate({p}).model.collective(OpKind::all_reduce, 1e6, 2, 1);
  CHECK(estimate.cpu_s == Approx(1e-3).epsilon(0.01));
  CHECK(estimate.latency_s == Approx(1e-4).epsilon(0.05));
}

TEST_CASE("kernels of a suite that no work item is are left out with a note; the same thing twice is pooled") {
  Profile p = synthetic_profile(), again = synthetic_profile();
  Measurement other = p.measurements[0];
  other.kernel = "quantise";
  p.measurements.push_back(other);
  for (double& s : again.measurements[0].samples) s *= 3;
  const CalibrationResult result = calibrate({p, again});
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0], Catch::Contains("quantise"));
  const double first = product_s(gemm(32, 64, 64));
  CHECK(result.model.item(gemm(32, 64, 64), 0).seconds == Approx(0.5 * (1.02 + 3 * 0.98) * first));
}

TEST_CASE("a machine model knows the profiles it was calibrated on, and no other") {
  Profile bench = machine(), run = bench, again = bench;
  run.measurements = {trace("attention.fwd", 1, 1, 2e-3)};
  again.measurements = {trace("attention.fwd", 1, 1, 2.1e-3)};  // the same run another time
  MachineData data = machine_from_json(to_json(calibrate({bench, run}).model.data()), "machine.json");
  CHECK(calibrated_on(data, bench));
  CHECK(calibrated_on(data, profile_from_json(to_json(run), "written and read")));
  CHECK_FALSE(calibrated_on(data, again));
  Profile merged = bench;
  merged.fingerprint[kMergedFrom] = digest(again);
  CHECK(calibrated_on(calibrate({merged}).model.data(), again));
  CHECK(calibrated_on(calibrate({merged}).model.data(), merged));
  data.fingerprint.erase(kCalibratedOn);
  CHECK_THROWS_WITH(calibrated_on(data, run), Catch::Contains("run windtunnel calibrate again"));
}

TEST_CASE("a throttled device is said to have been one") {
  Profile p = synthetic_profile();
  p.measurements[0].throttled = {"sw_thermal"};
  const CalibrationResult result = calibrate({p});
  REQUIRE(result.notes.size() == 1);
  CHECK_THAT(result.notes[0], Catch::Contains("1 measurement(s) were taken on a throttled device"));
}
