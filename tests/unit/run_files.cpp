// A published run as files, simulated: without communication its step is the step model's sum, communication only adds,
// and what files cannot say is named.
#include <catch2/catch.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "sim/cost/op_times.hpp"
#include "sim/cost/stacks/step_family.hpp"
#include "sim/fit/step_work.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "sim/replay/simulated_step.hpp"
#include "sim/validate/judge_memory.hpp"
#include "sim/validate/judge_runs.hpp"
#include "tests/fixtures/fake_cost.hpp"
#include "tests/fixtures/published_reference.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using Catch::Contains;

namespace {

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
  run.precision = precision_recipe("amp_bf16", "test");
  return run;
}

/// Nothing hidden and nothing of the host.
StepConstants plain() {
  StepConstants k;
  k.values.fill(1);
  for (StepConstant c : {StepConstant::item_s, StepConstant::call_s, StepConstant::routing_s, StepConstant::step_s})
    k.values[static_cast<std::size_t>(c)] = 0;
  return k;
}

StackSpec stack_with(AttentionKernels attention = AttentionKernels::unnamed, bool separate = false) {
  StackSpec stack;
  stack.name = "made up";
  stack.attention = attention;
  stack.separate_reduce_group = separate;
  return stack;
}

double seconds(const RunRow& run, const StackSpec& stack = stack_with()) {
  const RunFiles files = run_files(run, stack);
  const StackUse use{traits_of(stack, run.gpu), plain()};
  return forecast(files, StackCost(files.cluster, use, test::published().benchmarks(), files.run.precisions)).step_s;
}

double sum_of(const RunRow& run) { return step_seconds(step_work(run, test::published().benchmarks()), {}, plain()); }

}  // namespace

TEST_CASE("where the network limits a step, a stack whose gathers and reductions share a communicator takes longer") {
  RunRow run = run_of(16, 2);
  run.interconnect = read_interconnect("1x100G IB", 8);
  CHECK(seconds(run) > 1.01 * seconds(run, stack_with(AttentionKernels::unnamed, true)));
}

TEST_CASE("one GPU takes the sum of its work, however many microbatches") {
  for (std::int64_t accumulation : {1, 3, 7}) {
    const RunRow run = run_of(1, accumulation);
    INFO(accumulation);
    CHECK(seconds(run) == Approx(sum_of(run)).epsilon(1e-6));
  }
}

TEST_CASE("the slower its adapters, the longer a step") {
  const double nodes = seconds(run_of(32, 2));
  RunRow slower = run_of(32, 2);
  slower.interconnect = read_interconnect("4x100G IB", 8);
  CHECK(seconds(slower) > 1.5 * nodes);
  RunRow half = run_of(32, 2);
  half.gradient_bytes = 2;
  CHECK(seconds(half) < nodes);
}

TEST_CASE("tensor groups and pipelines take what the step model sums, less what runs at once") {
  const auto [tensor, stages, chunks] = GENERATE(table<std::int64_t, std::int64_t, std::int64_t>(
      {{2, 1, 1}, {8, 1, 1}, {1, 2, 1}, {1, 4, 1}, {2, 4, 1}, {1, 2, 2}}));
  RunRow run = run_of(8, 16);
  run.model.layers = 16;
  run.tp = tensor, run.pp = stages, run.vp = chunks;
  run.sequence_parallel = tensor > 1;
  run.dp = 8 / tensor / stages;
  run.zero_stage = 1, run.shard_group = run.dp;
  run.global_batch = run.dp * run.accumulation;
  const double sum = sum_of(run);
  INFO("tensor " << tensor << " pipeline " << stages << " x " << chunks);
  CHECK(seconds(run) < 1.06 * sum);
  CHECK(seconds(run) > 0.9 * sum);
}

TEST_CASE("microbatches beyond the replayed ones take as long as the last of these") {
  using Case = std::tuple<std::int64_t, std::int64_t, Schedule>;
  const auto [stages, chunks, schedule] = GENERATE(values<Case>({{1, 1, Schedule::one_f_one_b},
                                                                 {2, 1, Schedule::one_f_one_b},
                                                                 {4, 1, Schedule::one_f_one_b},
                                                                 {2, 2, Schedule::one_f_one_b},
                                                                 {2, 2, Schedule::dualpipe_v},
                                                                 {4, 2, Schedule::dualpipe_v}}));
  RunRow row = run_of(8, schedule == Schedule::dualpipe_v ? 16 : 12);
  row.model.layers = 8;
  row.pp = stages, row.vp = chunks;
  row.dp = row.shard_group = 8 / stages;
  if (stages > 1) row.zero_stage = 1;
  row.global_batch = row.dp * row.accumulation;
  INFO("pipeline " << stages << " x " << chunks);
  RunFiles files = run_files(row, stack_with());
  files.run.layout.schedule = schedule;
  const StackCost cost(files.cluster, StackUse{traits_of(files.stack, row.gpu), plain()},
                       test::published().benchmarks());
  const auto routing = balanced_routing(files.run.model, files.run.tokens());
  const auto step = [&](bool every) {
    StepOptions how;
    how.every_microbatch = every;
    return simulated_step(step_question(files.run, files.cluster, files.stack, *routing), cost, how);
  };
  const SimulatedStep some = step(false), all = step(true);
  CHECK(some.replayed < some.microbatches);
  CHECK(all.replayed == all.microbatches);
  CHECK(some.replay.step_s == Approx(all.replay.step_s).epsilon(2e-3));
  CHECK(some.replay.high_s == Approx(all.replay.high_s).epsilon(0.02));  // as wide as of the replayed ones
}

TEST_CASE("products in fp8 take less time, attention that keeps its scores more") {
  RunRow run = run_of(8, 1);
  const double usual = seconds(run);
  CHECK(seconds(run, stack_with(AttentionKernels::unfused)) > 1.1 * usual);
  run.precision = precision_recipe("amp_fp8", "test");
  CHECK(seconds(run) < 0.9 * usual);
}

TEST_CASE("what files cannot say of a run is named, or the run has no prediction") {
  RunRow run = run_of(16, 2);
  run.model = read_model("qwen3-30b-a3b");
  run.model.layers = 2;
  run.ep = 16;
  run.dispatcher = Dispatcher::deepep;
  const RunFiles files = run_files(run, stack_with());
  CHECK(files.unsaid.empty());
  CHECK(files.run.layout.dispatcher == Dispatcher::deepep);
  RunRow staged = run_of(8, 1);
  staged.pp = 8, staged.dp = staged.shard_group = 1, staged.zero_stage = 1, staged.vp = 4, staged.accumulation = 8;
  staged.model.layers = 30;  // the first and the last of 32 chunks have the embedding and the head alone
  const RunFiles ends = run_files(staged, stack_with());
  CHECK(ends.unsaid.empty());
  CHECK(ends.run.layout.virtual_stages == 4);
  staged.pipeline_layout = pipeline_layout_from_string("E|t|(t|)*29L", "a row");
  CHECK(run_files(staged, stack_with()).run.layout.chunk_layers == ends.run.layout.layers_of_chunks(30));
  run.zero_stage = 1;
  run.exchange_overlapped = true;
  CHECK(run_files(run, stack_with()).run.layout.exchange_overlap);
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

TEST_CASE("what no run file says is refused") {
  const auto refused = [](auto change, const char* why) {
    RunRow run = run_of(8, 1);
    change(run);
    CHECK_THROWS_WITH(seconds(run), Contains(why));
  };
  refused([](RunRow& r) { r.precision = precision_recipe("amp_nvfp4", "test"); }, "no nvfp4 products on H100-SXM");
  refused([](RunRow& r) { r.gpus = r.dp = r.shard_group = 100000; }, "more than 16384 GPUs");
  refused([](RunRow& r) { r.unusable = "no steps"; }, "no steps");
}

TEST_CASE("simulate says of a published run's files what validate says of the run, where nothing is left out") {
  const PublishedTimes& published = test::published();
  const test::TempDirectory folder;
  int simulated = 0;
  for (std::size_t i = 0; i < published.tables().runs.size() && i < 600; i += 24) {
    const RunRow& row = published.tables().runs[i];
    const StackSpec stack = stack_of(row.framework, published.stacks());
    const std::vector<Judged> judged = judge_runs({row}, published, {.left_out = LeftOutOfSteps::nothing});
    if (!judged[0].forecast.value) continue;
    // As the command does: everything from the files.
    const RunFiles files = run_files(row, stack);
    write_run_files(files, folder / std::to_string(row.line));
    RunSpec run = read_run(folder / std::to_string(row.line) / "run.yaml");
    const ClusterSpec cluster = read_cluster((folder / std::to_string(row.line) / "cluster.yaml").string());
    const std::string command = test::read_bytes(folder / std::to_string(row.line) / "command.txt");
    static const std::regex named("--stack ([^ \n]+)");
    std::smatch by;
    REQUIRE(std::regex_search(command, by, named));
    const MachineTimes times = make_times({.profiles = {}, .machine = {}, .stack = by[1], .precisions = run.precisions},
                                          cluster, run.layout.world());
    const NamedRouting routing = read_routing(files.routing, run.model, run.tokens(), run.layout.expert);
    const ReplayResult step =
        simulated_step(step_question(run, cluster, times.stack, *routing.source), *times.cost,
                       {.replay = {.health = {}, .off_by = times.intervals.of(step_family(run.model, run.layout))}})
            .replay;
    INFO(row.name);
    CHECK(step.step_s == Approx(*judged[0].forecast.value).epsilon(1e-9));
    CHECK(step.low_s == Approx(judged[0].forecast.low).epsilon(1e-9));
    CHECK(step.high_s == Approx(judged[0].forecast.high).epsilon(1e-9));
    ++simulated;
  }
  CHECK(simulated >= 15);
}

TEST_CASE("the peak that simulate prints of a published run's files is the memory that validate judges of the run") {
  const PublishedTimes& published = test::published();
  const test::TempDirectory folder;
  std::set<std::string> kinds;
  // GPTs in pipelines whose scores are kept, stages of uneven cost, FSDP, gradients in 16 bits, and experts: over
  // replicas beside FSDP with trained loads, over a pipeline's, balanced.
  for (const char* id : {"n0065", "n0074", "r00424", "r00828", "n0087", "n0100", "r01473", "r00139", "t01"}) {
    const std::vector<RunRow>& rows = published.tables().runs;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const RunRow& r) { return r.id == id; });
    INFO(id);
    REQUIRE(row != rows.end());
    INFO(row->name);
    REQUIRE(row->unusable == "");
    write_run_files(run_files(*row, stack_of(row->framework, published.stacks())), folder / id);
    RunSpec run = read_run(folder / id / "run.yaml");
    const ClusterSpec cluster = read_cluster((folder / id / "cluster.yaml").string());
    const std::string command = test::read_bytes(folder / id / "command.txt");
    const auto said = [&](const std::string& flag) {
      std::smatch found;
      std::regex_search(command, found, std::regex("--" + flag + " ([^ \n]+)"));
      return found.str(1);
    };
    const StackSpec stack = read_stack(said("stack"));
    const NamedRouting routing = read_routing({said("routing")}, run.model, run.tokens(), run.layout.expert);
    const test::FakeCost cost;
    double peak = 0;
    for (const StepTimeline& t :
         simulated_step(step_question(run, cluster, stack, *routing.source), cost).replay.timelines)
      if (!stack.memory.first_rank_only || t.rank < run.layout.stage_ranks()) peak = std::max(peak, t.peak_bytes);
    CHECK(simulated_memory(*row, stack).peak() == Approx(peak).epsilon(1e-9));
    kinds.insert(run.layout.pipeline > 1 ? "pipeline" : run.layout.expert > 1 ? "experts" : "sharded");
  }
  CHECK(kinds.size() == 3);
}
