// What a rehearsal runs in place of a plan that does not fit the machine.
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "configs/base/error.hpp"
#include "planner/cli/rehearse/rehearsal_report.hpp"
#include "planner/experiments/reduced_run.hpp"
#include "sim/cost/kernels/machine_data.hpp"
#include "sim/program/routing/named_routing.hpp"
#include "tests/fixtures/temp_directory.hpp"

using namespace wt;
using namespace wt::test;
using Catch::Contains;

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

RunSpec dbrx_run(std::int64_t replicate = 16, std::int64_t shard = 192, std::int64_t expert = 1) {
  RunSpec run;
  run.name = "dbrx", run.model = read_model("dbrx");
  run.layout.replicate = replicate, run.layout.shard = shard, run.layout.expert = expert;
  run.layout.microbatch = 2, run.layout.recompute = Recompute::block;
  run.precision = Precision::bf16, run.seq = 4096, run.steps = 10;
  run.global_batch = run.layout.world() * run.layout.microbatch * 3;
  return run;
}

std::unique_ptr<RoutingSource> proxy_routing(const RunSpec& run) {
  return read_routing({"dbrx-proxy"}, run.model, run.tokens(), run.layout.expert).source;
}

std::set<std::string> op_names(const Program& program) {
  std::set<std::string> out;
  for (const OpInstance& op : unroll(program)) out.insert(op.op->name);
  return out;
}

}  // namespace

TEST_CASE("widths shrink together, heads keep their ratio") {
  const ModelSpec dbrx = read_model("dbrx");
  for (const std::int64_t divisor : {2, 8, 32, 64}) {
    const ModelSpec m = scaled_model(dbrx, divisor, Precision::bf16);
    CHECK(m.d_model * divisor == dbrx.d_model);
    CHECK(m.ffn * divisor == dbrx.ffn);
    CHECK(m.heads * m.head_dim * divisor == dbrx.heads * dbrx.head_dim);
    CHECK(m.heads * dbrx.kv_heads == m.kv_heads * dbrx.heads);
    CHECK((m.experts == dbrx.experts && m.top_k == dbrx.top_k));
  }
  CHECK(scaled_model(dbrx, 1, Precision::bf16).vocab == dbrx.vocab);
}

TEST_CASE("a width that does not scale is refused with the fraction to take") {
  CHECK_THROWS_WITH(scaled_model(read_model("dbrx"), 5, Precision::bf16),
                    Contains("6144") && Contains("over 5") && Contains("multiple of 8") && Contains("wider"));
  CHECK_THROWS_WITH(scaled_model(read_model("dbrx"), 512, Precision::bf16),
                    Contains("over 512") && Contains("multiple of 8"));
}

TEST_CASE("DBRX on 3,072 GPUs becomes a run that fits, with the plan's ops") {
  const RunSpec plan = dbrx_run();
  const RehearsalLimits limits{8 * kGiB, 1e11};
  const RunSpec run = reduced_run(plan, proxy_routing, limits);
  CHECK(run.layout.name() == plan.layout.name());
  CHECK(run.rehearsal.width_divisor > 1);
  CHECK(run.model.layers == 4);
  CHECK(run.microbatches() == 2);
  const auto source = proxy_routing(run);
  const RankRouting rows(run, *source);
  CHECK(replay_memory(rank_program(run), rows.rows(1)).peak_bytes <= limits.memory_bytes);
  CHECK(step_flops(rank_program(run), rows.rows(1)) <= limits.step_flops);
  CHECK(op_names(rank_program(run)) == op_names(rank_program(plan)));
  CHECK_THAT(reduction(plan, run),
             Contains("of the plan's width") && Contains("4 of 40 layers") && Contains("2 of 3 microbatches"));
  check_run(run, "reduced");
}

TEST_CASE("of more than two microbatches a smaller last one is left out: the others stand for the step") {
  for (const auto& [batch, last] : {std::pair{7, 2}, {3, 1}}) {  // 2 2 2 1 becomes 2 2; 2 1 stays
    RunSpec plan = dbrx_run();
    plan.global_batch = plan.layout.world() * batch;
    const RunSpec run = reduced_run(plan, proxy_routing, {8 * kGiB, 1e11});
    CHECK((run.microbatches() == 2 && run.sequences().last == last));
    CHECK(op_names(rank_program(run)) == op_names(rank_program(plan)));
    check_run(run, "reduced");
  }
}

TEST_CASE("what fits is left as it is") {
  RunSpec plan = dbrx_run(1, 4, 4);
  plan.model = scaled_model(plan.model, 64, Precision::bf16);
  plan.seq = 64;
  const RunSpec run = reduced_run(plan, proxy_routing, {8 * kGiB, 1e12});
  CHECK(reduction(plan, run).empty());
  CHECK((run.model.layers == plan.model.layers && run.global_batch == plan.global_batch &&
         run.rehearsal.width_divisor == 1));
}

TEST_CASE("what the rehearsal section asks for is kept; time alone refuses nothing") {
  RunSpec plan = dbrx_run();
  plan.rehearsal.width_divisor = 16, plan.rehearsal.layers = 6, plan.rehearsal.seq = 1024;
  const RunSpec run = reduced_run(plan, proxy_routing, {8 * kGiB, 1});
  CHECK((run.model.d_model == 384 && run.model.layers == 6 && run.seq == 1024));
}

TEST_CASE("a machine with too little memory, and sizes that the plan does not have") {
  RunSpec plan = dbrx_run();
  plan.rehearsal.width_divisor = 1;
  CHECK_THROWS_WITH(reduced_run(plan, proxy_routing, {8 * kGiB, 1e15}),
                    Contains("GiB of tensors") && Contains("allows 8.00 GiB") && Contains("rehearsal.width"));
  plan.rehearsal.width_divisor = 0;
  CHECK_THROWS_WITH(reduced_run(plan, proxy_routing, {1e5, 1e11}), Contains("this machine allows"));
  plan.rehearsal.layers = 41;
  CHECK_THROWS_WITH(reduced_run(plan, proxy_routing, {8 * kGiB, 1e11}), Contains("41") && Contains("40"));
}

TEST_CASE("counts in whole rows keep their sum and stay within one of the share") {
  const std::vector<double> counts{10.4, 3.3, 0.0, 2.3};
  const auto rows = whole_rows(counts, 11);
  CHECK(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) == 16);
  for (std::size_t e = 0; e < counts.size(); ++e) CHECK(std::abs(static_cast<double>(rows[e]) - counts[e]) < 1);
  CHECK_THROWS_WITH(whole_rows(counts, 9), Contains("expert 0") && Contains("9 tokens"));
}

TEST_CASE("the recording that a rehearsal runs on gives back the plan's rows, for every rank of the expert group") {
  RunSpec run = dbrx_run(2, 8, 4);
  run.rehearsal.rank = 6;
  run.model.layers = 3, run.seq = 128;
  const auto source = proxy_routing(run);
  const RankRouting rows(run, *source);
  const TempDirectory folder;
  write_bytes(folder / "routing.csv", rows.recording(2));
  const auto recorded = recorded_routing(folder / "routing.csv", run.model, run.layout.microbatch * run.seq);
  double received = 0;
  for (const std::int64_t rank : {4, 5, 6, 7}) {
    const auto sent = rows.sent(2, 1, 2, rank);
    CHECK(recorded->counts(2, 1, 2, rank) == std::vector<double>(sent.begin(), sent.end()));
    for (const std::int64_t expert : {8, 9, 10, 11})
      received += static_cast<double>(sent[static_cast<std::size_t>(expert)]);
  }
  CHECK(rows.received(2, 1, 2) == received);
}

TEST_CASE("the rehearsal section of a run file reads back, and says what is wrong in it") {
  RunSpec run = dbrx_run();
  run.rehearsal.rank = 5, run.rehearsal.width_divisor = 16, run.rehearsal.layers = 4,
  run.rehearsal.routing = "dbrx-proxy";
  const TempDirectory folder;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = run_to_yaml(run);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write_bytes(folder / "run.yaml", text.replace(at, from.size(), to));
    return read_run(folder / "run.yaml");
  };
  CHECK(with("1/16", "1/16").rehearsal == run.rehearsal);
  CHECK(with("1/16", "full").rehearsal.width_divisor == 1);
  CHECK(with("1/16", "auto").rehearsal.width_divisor == 0);
  CHECK_THROWS_WITH(with("1/16", "0.5"), Contains("rehearsal.width") && Contains("'0.5'") && Contains("1/16"));
  CHECK_THROWS_WITH(with("1/16", "1/x"), Contains("'1/x'"));
  CHECK_THROWS_WITH(with("rank: 5", "rank: 3072"), Contains("3072") && Contains("0 to 3071"));
  CHECK_THROWS_WITH(with("device: cpu", "device: gpu"), Contains("gpu") && Contains("cpu") && Contains("cuda"));
  CHECK_THROWS_WITH(with("\n  layers: 4", "\n  layer: 4"), Contains("did you mean 'layers'"));
}
