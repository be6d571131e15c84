// A published run on the simulator: without communication its replay is the step model's sum, communication only adds,
// and what is not replayed says so.
#include "sim/validate/replayed_run.hpp"

#include <catch2/catch.hpp>

#include "configs/spec/support/error.hpp"
#include "tests/support/published_reference.hpp"

using namespace wt;
using Catch::Contains;

namespace {

const ReplayedRuns& replayed() {
  static const ReplayedRuns runs(test::published_reference());
  return runs;
}

/// FSDP over all GPUs.
RunRow run_of(std::int64_t gpus, std::int64_t accumulation) {
  RunRow run;
  run.name = "a run";
  run.gpu = "H100-80GB";
  run.interconnect = read_interconnect("8x400G IB", 8);
  run.model = read_model("llama3-8b");
  run.model.layers = 4;
  run.gpus = run.dp = run.shard_group = gpus;
  run.gpus_per_node = 8;
  run.seq = 4096;
  run.microbatch = 1;
  run.accumulation = accumulation;
  run.global_batch = gpus * accumulation;
  run.zero_stage = 3;
  run.precision = "bf16";
  return run;
}

/// Nothing hidden and nothing of the host.
StepConstants plain() {
  StepConstants k;
  k.values.fill(1);
  for (StepConstant c : {StepConstant::item_s, StepConstant::call_s, StepConstant::step_s})
    k.values[static_cast<std::size_t>(c)] = 0;
  return k;
}

double seconds(const RunRow& run) { return replayed().seconds(run, {"", "H100-SXM", false, false}, plain()); }

}  // namespace

TEST_CASE("where the network limits a step, a stack whose gathers and reductions share a communicator takes longer") {
  RunRow run = run_of(16, 2);
  run.interconnect = read_interconnect("1x100G IB", 8);
  const auto step_s = [&](bool separate) {
    return replayed().seconds(run, {"", "H100-SXM", false, false, {}, separate}, plain());
  };
  CHECK(step_s(false) > 1.01 * step_s(true));
}

TEST_CASE("one GPU takes the sum of its work, however many microbatches") {
  const ItemTimes gpu(test::published_reference().kernels);
  const CollectiveEstimator& fabric = CollectiveEstimator::published();
  for (std::int64_t accumulation : {1, 3, 7}) {
    const RunRow run = run_of(1, accumulation);
    const double sum = step_seconds(step_work(run, gpu, fabric), {}, plain());
    INFO(accumulation);
    CHECK(seconds(run) == Approx(sum).epsilon(1e-6));
  }
}

TEST_CASE("the slower its adapters, the longer a step") {
  const double nodes = seconds(run_of(32, 2));
  CHECK(nodes > seconds(run_of(8, 2)));
  RunRow slower = run_of(32, 2);
  slower.interconnect = read_interconnect("4x100G IB", 8);
  CHECK(seconds(slower) > 1.5 * nodes);
  RunRow half = run_of(32, 2);
  half.gradient_bytes = 2;
  CHECK(seconds(half) < nodes);
}

TEST_CASE("tensor groups and pipelines take what the step model sums, less what runs at once") {
  const ItemTimes gpu(test::published_reference().kernels);
  const CollectiveEstimator& fabric = CollectiveEstimator::published();
  const auto [tensor, stages, chunks] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{2, 1, 1}, {8, 1, 1}, {1, 2, 1}, {1, 4, 1}, {2, 4, 1}, {1, 2, 2}}));
  RunRow run = run_of(8, 16);
  run.model.layers = 16;
  run.tp = tensor, run.pp = stages, run.vp = chunks;
  run.sequence_parallel = tensor > 1;
  run.dp = 8 / tensor / stages;
  run.zero_stage = 1, run.shard_group = run.dp;
  run.global_batch = run.dp * run.accumulation;
  const double sum = step_seconds(step_work(run, gpu, fabric), {}, plain());
  INFO("tensor " << tensor << " pipeline " << stages << " x " << chunks);
  CHECK(seconds(run) < 1.06 * sum);
  CHECK(seconds(run) > 0.9 * sum);
}

TEST_CASE("microbatches beyond the replayed ones take as long as the last of these") {
  static const ReplayedRuns every(test::published_reference(), true);
  const auto [stages, chunks] = GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {2, 1}, {4, 1}, {2, 2}}));
  RunRow run = run_of(8, 12);
  run.model.layers = 8;
  run.pp = stages, run.vp = chunks;
  run.dp = run.shard_group = 8 / stages;
  if (stages > 1) run.zero_stage = 1;
  run.global_batch = run.dp * run.accumulation;
  INFO("pipeline " << stages << " x " << chunks);
  CHECK(seconds(run) == Approx(every.seconds(run, {"", "H100-SXM", false, false}, plain())).epsilon(2e-3));
}

TEST_CASE("products in fp8 take less time, attention that keeps its scores more") {
  RunRow run = run_of(8, 1);
  const double usual = seconds(run);
  run.precision = "fp8";
  CHECK(seconds(run) < 0.9 * usual);
  run.precision = "bf16", run.flash_attention = false;
  CHECK(seconds(run) > 1.1 * usual);
}

TEST_CASE("a dispatcher that sends a token once to each node takes less time") {
  RunRow run = run_of(16, 2);
  run.model = read_model("qwen3-30b-a3b");
  run.model.layers = 2;
  run.ep = 16;
  const double each = seconds(run);
  run.rows_sent_once = true;
  CHECK(seconds(run) < each);
}

TEST_CASE("the cluster is the run's GPUs and the adapters that its source names") {
  const ClusterSpec cluster = cluster_of(run_of(32, 1));
  CHECK(cluster.nodes == 4);
  CHECK(cluster.gpus_per_node == 8);
  CHECK(cluster.nic_per_gpu_Bps() == Approx(50e9));
  CHECK(cluster.nvswitch_Bps == Approx(450e9));
  CHECK(cluster_of(run_of(4, 1)).nodes == 1);
  RunRow racks = run_of(128, 1);
  racks.gpu = "GB200", racks.gpus_per_node = 4, racks.interconnect = interconnect_of("NVL72", "GB200", 4);
  CHECK(cluster_of(racks).nodes == 2);
  CHECK(cluster_of(racks).gpus_per_node == 64);
  CHECK(cluster_of(racks).nic_per_gpu_Bps() == Approx(50e9));
  RunRow unknown = run_of(8, 1);
  unknown.gpu = "Q7";
  CHECK_THROWS_WITH(cluster_of(unknown), Contains("no data sheet of 'Q7'"));
}

TEST_CASE("what is not replayed says so") {
  const auto refused = [](auto change, const char* why) {
    RunRow run = run_of(8, 1);
    change(run);
    CHECK_THROWS_WITH(seconds(run), Contains(why));
  };
  refused([](RunRow& r) { r.dp = 2, r.pp = 3; }, "unlike numbers of layers");
  refused([](RunRow& r) { r.dp = 4, r.pp = r.vp = 2, r.accumulation = 5; }, "interleaved stages");
  refused([](RunRow& r) { r.dp = 4, r.tp = r.ep = 2, r.whole_experts = true; }, "experts of their own");
  refused([](RunRow& r) { r.precision = "int4"; }, "int4");
  refused([](RunRow& r) { r.exchange_overlapped = true; }, "another microbatch");
  refused([](RunRow& r) { r.gpus = r.dp = r.shard_group = 100000; }, "more than 16384 GPUs");
  refused([](RunRow& r) { r.unusable = "no steps"; }, "no steps");
}
