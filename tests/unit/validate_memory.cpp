// Memory of published runs by their step programs, against the formulas of the papers; and the fit of what shapes do
// not say.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "configs/base/error.hpp"
#include "configs/files/run.hpp"
#include "sim/fit/memory_fit.hpp"
#include "sim/fit/row_program.hpp"
#include "sim/validate/judge_memory.hpp"

using namespace wt;

namespace {

constexpr double kGiB = 1 << 30;
constexpr double kStatistics = 1e-3;  // norms keep 8 bytes a token, which the papers leave out

/// A GPT of 2021: four widths of FFN, GELU, scores materialised.
RunRow gpt(std::int64_t layers, std::int64_t width, std::int64_t heads) {
  RunRow row;
  ModelSpec& m = row.model;
  m.name = std::string("gpt");  // GCC 12 sees an overflow in the assignment of a literal here; there is none
  m.layers = layers;
  m.d_model = width;
  m.heads = m.kv_heads = heads;
  m.head_dim = width / heads;
  m.ffn = 4 * width;
  m.vocab = 51200;
  m.activation = Activation::gelu;
  row.seq = 2048;
  row.microbatch = row.accumulation = row.gpus = 1;
  row.source = std::string("s");
  row.group = std::string("s | gpt");
  return row;
}

RunRow gated() {
  RunRow row = gpt(1, 4096, 32);
  row.model.activation = Activation::swiglu;
  row.model.ffn = 14336;
  row.model.kv_heads = 8;
  return row;
}

LiveMemory live(const RunRow& row, const StackSpec& stack) {
  return live_memory(peak_program(row, stack), stack.memory);
}

/// Bytes a token that one layer keeps.
double layer_bytes(const RunRow& row, const StackSpec& stack) {
  const LiveMemory of = layer_memory(peak_program(row, stack));
  return of.dynamic / static_cast<double>(row.model.layers * row.seq * row.microbatch / row.cp);
}

/// Korthikanti et al. 2022: bytes of one layer's activations over s b h, with tensor parallelism of t.
double over_sbh(const RunRow& row) {
  return layer_bytes(row, read_stack("megatron-lm")) / static_cast<double>(row.model.d_model);
}

}  // namespace

TEST_CASE("activations of a layer are the terms of Korthikanti et al.") {
  RunRow row = gpt(2, 6144, 64);
  const double scores = 5.0 * 64 * 2048 / 6144;
  const auto is = [](double value) { return Approx(value).epsilon(kStatistics); };
  CHECK(over_sbh(row) == is(34 + scores));  // equation 1
  row.tp = row.gpus = 8;
  CHECK(over_sbh(row) == is(10 + 24.0 / 8 + scores / 8));  // equation 2
  row.sequence_parallel = true;
  CHECK(over_sbh(row) == is((34 + scores) / 8));  // equation 4
  row.recompute = recompute_from_string("core");
  CHECK(over_sbh(row) == is(34.0 / 8));  // table 2
  row.sequence_parallel = false;
  row.recompute = Recompute::block;
  CHECK(over_sbh(row) == is(2));  // table 2
}

TEST_CASE("a gated layer keeps gate, up and their product, and the activated gate where it is not fused") {
  RunRow row = gated();
  StackSpec stack = read_stack("megatron-core");
  const double attention = 2.0 * (4096 + 2 * 1024 + 4096) + 4 * 32, residual = 2 * 2 * 2 * 4096 + 8;
  CHECK(layer_bytes(row, stack) == Approx(residual + attention + 2.0 * 3 * 14336));
  stack.memory.fused_gate = false;
  CHECK(layer_bytes(row, stack) == Approx(residual + attention + 2.0 * 4 * 14336));
  stack.memory.fused_gate = true;
  row.cp = row.gpus = 2;  // heads are exchanged: the attention's output twice
  CHECK(layer_bytes(row, stack) == Approx(residual + attention + 2.0 * 4096 + 2.0 * 3 * 14336));
}

TEST_CASE("selective recompute by op keeps the input, half of the products and the attention") {
  RunRow row = gated();
  const StackSpec stack = read_stack("torchtitan");
  const double whole = layer_bytes(row, stack);
  row.recompute = recompute_from_string("core");
  CHECK(layer_bytes(row, stack) == Approx(whole - 4 * 32));  // no scores to drop
  row.recompute = recompute_from_string("products");
  CHECK(layer_bytes(row, stack) ==
        Approx(2 * (4096 + (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096) / 2.0 + 4096) + 4 * 32));
}

TEST_CASE("gathered inputs that come back late are two a layer, without a pipeline and after eight microbatches") {
  RunRow row = gpt(6, 1024, 16);
  row.gpus = row.tp = 4;
  row.sequence_parallel = true;
  row.accumulation = 4;
  const auto late = [&] {
    StackSpec stack = read_stack("nanotron");
    const double with = live(row, stack).dynamic;
    stack.memory.late_reuse = false;
    return with - live(row, stack).dynamic;
  };
  CHECK(late() == Approx(0.5 * 2 * 6 * 2.0 * 1024 * 2048));
  row.accumulation = 64;
  CHECK(late() == Approx(2 * 6 * 2.0 * 1024 * 2048));
  row.sequence_parallel = false;
  CHECK(late() == 0);
  row.sequence_parallel = true;
  row.pp = 2, row.gpus = 8;
  CHECK(late() == 0);
}

TEST_CASE("states by ZeRO stage: 18, 6 + 12 / N and 16 / N bytes a parameter; a pipeline keeps its stage gathered") {
  RunRow row = gpt(4, 1024, 16);
  const auto parameters = static_cast<double>(row.model.total_parameters());
  const StackSpec stack = read_stack("megatron-lm"), fsdp = read_stack("torchtitan");
  const auto is = [](double value) { return Approx(value + 4.0 * 2048 * 64); };  // a table of positions
  row.dp = row.gpus = 8;
  CHECK(live(row, stack).kept == is(18 * parameters));
  row.zero_stage = 1;
  row.shard_group = 8;
  CHECK(live(row, stack).kept == is((6 + 12.0 / 8) * parameters));
  row.zero_stage = 3;
  CHECK(live(row, fsdp).kept == is(16.0 / 8 * parameters));
  row.model.tied = true;
  CHECK(live(row, fsdp).kept == is(16.0 / 8 * (parameters - 51200 * 1024)));
  row.model.tied = false;
  row.pp = 2, row.dp = row.shard_group = 4;
  row.accumulation = 8;
  const StepProgram staged = peak_program(row, fsdp);
  const ProgramSet programs = staged.build();
  double gathered = 0;
  for (const Buffer& buffer : programs.programs.front().resident)
    if (buffer.comes_and_goes) gathered += buffer.bytes.at(0);
  CHECK(gathered == Approx(6.0 * (parameters - 1024) / 2));  // the last stage has the final norm
}

TEST_CASE("without a shared optimizer every rank has all states, however many ranks share experts or sequences") {
  RunRow row = gpt(4, 1024, 16);
  row.model.ffn = 1024, row.model.experts = 8, row.model.top_k = 1;
  row.dp = row.gpus = 8;
  const StackSpec stack = read_stack("megatron-lm");
  const auto parameters = static_cast<double>(row.model.total_parameters());
  const double experts = 4 * 8 * static_cast<double>(row.model.expert_parameters());
  const double table = 4.0 * 2048 * 64;
  row.ep = 4;
  CHECK(live(row, stack).kept == Approx(18 * (parameters - experts + experts / 4) + table));
  row.zero_stage = 1, row.shard_group = 8;  // experts are shared by the two ranks that have the same ones
  CHECK(live(row, stack).kept ==
        Approx((6 + 12.0 / 8) * (parameters - experts) + (6 + 12.0 / 2) * experts / 4 + table));
}

TEST_CASE("a loss in chunks has one chunk's logits at a time, and holds the projection's gradient meanwhile") {
  RunRow row = gpt(1, 1024, 16);
  row.model.vocab = 131072;
  StackSpec stack = read_stack("megatron-lm-te");
  const double logits = 2048.0 * 131072 * 6, gradient = 131072.0 * 1024 * 2;
  const double whole = live(row, stack).dynamic;
  row.stack.loss_chunks = 8;
  CHECK(whole - live(row, stack).dynamic == Approx(logits * 7 / 8 - gradient));
  row.stack.loss_chunks = {};
  stack.memory.loss_chunks = 8;  // the stack's default
  CHECK(whole - live(row, stack).dynamic == Approx(logits * 7 / 8 - gradient));
  row.stack.loss_chunks = 1;  // the row knows better
  CHECK(live(row, stack).dynamic == Approx(whole));
}

TEST_CASE("further tensors that a layer keeps are of its input's size, on each rank its share") {
  RunRow row = gpt(4, 1024, 16);
  StackSpec stack = read_stack("megatron-lm");
  const auto more = [&] {
    stack.memory.kept_inputs = 3;
    const double with = live(row, stack).dynamic;
    stack.memory.kept_inputs = 0;
    return with - live(row, stack).dynamic;
  };
  CHECK(more() == Approx(4 * 3 * 2.0 * 2048 * 1024));
  row.tp = row.gpus = 2;
  row.sequence_parallel = true;
  CHECK(more() == Approx(4 * 3 * 2.0 * 2048 * 1024 / 2));
}

TEST_CASE("Transformer Engine's workspaces: one, four more of grouped products, smaller before Hopper") {
  RunRow row = gpt(2, 1024, 16);
  const StackSpec stack = read_stack("megatron-lm-te");
  StackSpec none = stack;
  none.memory.product_workspace_bytes = 0;
  const auto workspaces = [&] { return (live(row, stack).kept - live(row, none).kept) / (1 << 20); };
  CHECK(workspaces() == Approx(32));
  row.model.experts = 4, row.model.top_k = 1;
  CHECK(workspaces() == Approx(5 * 32));
  row.gpu = std::string("A100-80GB");
  CHECK(workspaces() == Approx(5 * 4));
  row.stack.grouped_products = false;
  CHECK(workspaces() == Approx(4));
}

TEST_CASE("a run that ran or ran out of memory is judged by the probability of its own process") {
  RunRow row = gpt(8, 4096, 32);
  row.framework = std::string("torchtitan");
  row.zero_stage = 3, row.shard_group = row.dp = row.gpus = 8;
  row.gpu_bytes = 80 * kGiB;
  const auto judged = [&](RunRow::Outcome outcome) {
    row.outcome = outcome;
    return judge_outcomes({row}, {}, {}, read_stacks());
  };
  CHECK(judged(RunRow::Outcome::unsaid).empty());
  CHECK(judged(RunRow::Outcome::ran).at(0).right());
  CHECK_FALSE(judged(RunRow::Outcome::out_of_memory).at(0).right());
  row.gpu_bytes = 4 * kGiB;
  CHECK(judged(RunRow::Outcome::out_of_memory).at(0).right());
  row.gpu_bytes = 0;
  CHECK(judged(RunRow::Outcome::ran).empty());
}

TEST_CASE("microbatches in flight are those of the schedule: 1F1B, and interleaved chunks") {
  RunRow row = gpt(8, 1024, 16);
  StackSpec stack = read_stack("megatron-lm");
  stack.attention = AttentionKernels::flash2;
  const double whole = layer_memory(peak_program(row, stack)).dynamic;
  row.gpus = row.pp = 4;
  row.accumulation = 16;
  CHECK(layer_memory(peak_program(row, stack)).dynamic == Approx(whole));  // a quarter of the layers, four microbatches
  row.accumulation = 3;
  CHECK(layer_memory(peak_program(row, stack)).dynamic == Approx(whole * 3 / 4));
  row.accumulation = 16;
  row.vp = 2;  // 1 + (p - 1) / (p v) of Narayanan et al. 2021
  CHECK(layer_memory(peak_program(row, stack)).dynamic == Approx(whole * (1 + 3.0 / 8)));
}

TEST_CASE("stages of like numbers of layers, or of like cost with the output projection in it") {
  using Layers = std::vector<std::int64_t>;
  ModelSpec m = gpt(16, 2048, 32).model;
  m.activation = Activation::swiglu;
  m.ffn = 8192;
  m.vocab = 131072;  // costs four layers
  Layout layout;
  layout.pipeline = 4;
  CHECK(chunk_layers(m, layout, false).empty());
  CHECK(chunk_layers(m, layout, true) == Layers{6, 5, 4, 1});
  layout.pipeline = 2;
  CHECK(chunk_layers(m, layout, true) == Layers{11, 5});
  m.layers = 15;
  CHECK(chunk_layers(m, layout, false) == Layers{8, 7});
  layout.reshard_after_forward = layout.reduce_every_microbatch = false;
  layout.chunk_layers = {8, 7};
  CHECK_NOTHROW(layout.check(m, "here"));
  for (const Layers& wrong : {Layers{15}, Layers{8, 8}}) {
    layout.chunk_layers = wrong;
    CHECK_THROWS_WITH(layout.check(m, "here"), Catch::Contains("layers in all"));
  }
}

TEST_CASE("the peak is the stage's that has most: the first by its microbatches, the last by its logits") {
  RunRow row = gpt(8, 1024, 16);
  row.gpus = row.pp = 2;
  row.accumulation = 8;
  row.seq = 65536;
  row.model.vocab = 1024;
  StackSpec stack = read_stack("megatron-lm");
  stack.attention = AttentionKernels::flash2;
  const auto first_alone = [&] {
    StackSpec first = stack;
    first.memory.first_rank_only = true;
    return live(row, first).peak() / live(row, stack).peak();
  };
  CHECK(first_alone() == 1);
  row.model.vocab = 512000;
  CHECK(first_alone() < 0.5);
  CHECK(live(row, stack).dynamic > 65536 * 12.0 * 512000);
}

TEST_CASE("Korthikanti et al.'s own figures") {
  const auto judged = judge_memory(read_run_rows("configs/measurements/simulator_tables.csv"), {}, read_stacks());
  CHECK(std::count_if(judged.begin(), judged.end(), [](const Judged& j) { return j.forecast.value.has_value(); }) ==
        36);
  for (const Judged& j : judged) {
    INFO(j.name << " " << j.forecast.reason);
    CHECK(*j.forecast.value == Approx(j.measured).epsilon(0.015));  // figure 7 was read off a plot
  }
}

TEST_CASE("more of a split never costs memory, more tokens always do") {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return *(from.begin() +
             std::uniform_int_distribution<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(from.size()) - 1)(random));
  };
  for (int i = 0; i < 60; ++i) {
    RunRow row = gpt(pick({4, 7, 16}), pick({1024, 4096}), 32);
    row.tp = pick({1, 2, 4});
    row.pp = pick({1, 2, 4});
    row.dp = pick({2, 8});
    row.accumulation = pick({1, 3, 16});
    row.sequence_parallel = row.tp > 1;
    row.zero_stage = 1;
    row.shard_group = row.dp;
    const StackSpec stack = read_stack(pick({0, 1}) == 1 ? "megatron-core" : "megatron-lm");
    const double peak = live(row, stack).peak();
    const auto changed = [&](auto change) {
      RunRow other = row;
      change(other);
      return live(other, stack).peak();
    };
    INFO(row.model.layers << " layers, tp " << row.tp << " pp " << row.pp << " " << stack.name);
    CHECK(changed([](RunRow& r) { r.zero_stage = 0; }) > peak);
    CHECK(changed([](RunRow& r) { r.microbatch *= 2; }) > peak);
    if (stack.attention == AttentionKernels::unfused)
      CHECK(changed([](RunRow& r) { r.recompute = recompute_from_string("core"); }) <= peak);
    if (row.tp > 1) CHECK(changed([](RunRow& r) { r.tp *= 2; }) < peak);
  }
}

TEST_CASE("workspace and fragmentation are recovered from memory made of them") {
  std::vector<MemorySample> samples;
  for (const double kept : {0.1, 0.5, 1.0, 5.0, 20.0})
    for (const double dynamic : {0.1, 0.5, 4.0, 30.0})
      samples.push_back(
          {"g", "s", MemoryOf::peak_reserved, {kept * kGiB, dynamic * kGiB}, (kept + 1.4 * dynamic + 0.5) * kGiB});
  std::vector<const MemorySample*> all;
  for (const MemorySample& s : samples) all.push_back(&s);
  const MemoryConstants c = fit_memory(all, MemoryOf::peak_reserved).of("s");
  CHECK(c.fragmentation == Approx(1.4).epsilon(0.03));
  CHECK(c.workspace_bytes == Approx(0.5 * kGiB).epsilon(0.15));
  CHECK(fit_memory(all, MemoryOf::peak_allocated).of("s").fragmentation == 1);
  CHECK(fit_memory({}, MemoryOf::peak_reserved).typical.fragmentation == Approx(1.15));
  CHECK(fit_memory(all, MemoryOf::peak_reserved).of("another").fragmentation < c.fragmentation);
}

TEST_CASE("a row's own model has no part in its prediction, nor has any other row asked about") {
  std::vector<RunRow> rows;
  for (const char* group : {"a", "b"}) {
    RunRow row = gpt(8, 2048, 16);
    row.group = group;
    row.framework = "torchtitan";
    row.memory_of = MemoryOf::peak_allocated;
    row.memory_bytes = live(row, read_stack("torchtitan")).peak() + (*group == 'a' ? 1 : 2) * kGiB;
    rows.push_back(row);
  }
  rows.push_back(gpt(8, 2048, 16));  // measures no memory
  rows.push_back(gpt(8, 2048, 16));
  rows.back().unusable = std::string("tp not said");
  const auto judged = judge_memory(rows, rows, read_stacks());
  REQUIRE(judged.size() == 3);
  CHECK(*judged[0].forecast.value > *judged[1].forecast.value);  // each has the other's workspace
  CHECK(judged[2].forecast.reason == "tp not said");
  CHECK(*judged[0].baseline.value == Approx(rows[1].memory_bytes));
  const auto alone = judge_memory(rows, {}, read_stacks());
  CHECK(*alone[0].forecast.value == *alone[1].forecast.value);
  CHECK_FALSE(alone[0].baseline.value.has_value());
  CHECK_THROWS_AS(judge_memory({gpt(8, 2048, 16)}, {}, {}), Error);
}

TEST_CASE("a row's own figure has no part in its interval either") {
  std::vector<MemorySample> samples;
  for (const char* group : {"a", "b", "c"})
    for (const double dynamic : {5.0, 10.0, 20.0, 30.0, 40.0})
      samples.push_back({group,
                         "torchtitan",
                         MemoryOf::peak_reserved,
                         {10 * kGiB, dynamic * kGiB},
                         (10 + (*group == 'b' ? 1.3 : 1.2) * dynamic) * kGiB});
  const auto left_out = [&] {
    return MemoryModel(samples)
        .without("a")
        .of_stack(read_stack("torchtitan"))
        .of(MemoryOf::peak_reserved, {kGiB, kGiB});
  };
  const MemoryForecast before = left_out();
  for (MemorySample& s : samples)
    if (s.group == "a") s.measured *= 2;
  const MemoryForecast after = left_out();
  CHECK(after.bytes == before.bytes);
  CHECK(after.low == before.low);
  CHECK(after.high == before.high);
}

TEST_CASE("a row that no layout of ours has is abstained from with the reason") {
  RunRow row = gated();
  row.memory_of = MemoryOf::peak_reserved;
  row.memory_bytes = kGiB;
  row.framework = std::string("torchtitan");
  row.model.experts = 8, row.model.top_k = 2;
  row.dp = row.gpus = 4;
  row.ep = 3;
  const auto judged = judge_memory({row}, {row}, read_stacks());
  CHECK_FALSE(judged.at(0).forecast.value.has_value());
  CHECK_THAT(judged.at(0).forecast.reason, Catch::Contains("experts over 3 ranks"));
}

TEST_CASE("of a source that measured one model alone its layouts are left out") {
  std::vector<RunRow> rows;
  for (const std::int64_t tp : {1, 2}) {
    RunRow row = gpt(4, 1024, 16);
    row.tp = row.gpus = tp;
    row.framework = std::string("nanotron");
    row.memory_of = MemoryOf::peak_reserved;
    row.memory_bytes = kGiB;
    rows.push_back(row);
  }
  const MemoryModel model(memory_samples(rows, read_stacks()));
  CHECK(model.group_of(rows[0]) == "s | gpt | tp 1 pp 1");
  rows[1].group = "s | other";
  CHECK(MemoryModel(memory_samples(rows, read_stacks())).group_of(rows[0]) == "s | gpt");
}

TEST_CASE("memory of a stack that nobody described is as uncertain as that of described ones taken for it") {
  std::vector<RunRow> reference;
  for (const auto& [framework, factor] : {std::pair{"torchtitan", 1.1}, {"nanotron", 0.6}, {"Megatron-LM", 1.5}})
    for (const std::int64_t layers : {2, 4, 6, 8}) {
      RunRow row = gpt(layers, 2048, 16);
      row.framework = framework;
      row.group = std::string(framework) + " | " + std::to_string(layers);
      row.memory_of = MemoryOf::peak_reserved;
      row.memory_bytes = factor * live(row, StackSpec{}).peak();
      reference.push_back(row);
    }
  RunRow known = reference[0], other = reference[0];
  known.group = std::string("elsewhere | 2"), other.group = std::string("homegrown | 2");
  other.framework = std::string("Homegrown");
  const auto judged = judge_memory({known, other}, reference, read_stacks());
  REQUIRE(judged.size() == 2);
  CHECK(judged[0].regime == "peak reserved");
  CHECK(judged[1].regime == "peak, stack not described");
  const auto width = [](const Judged& j) { return j.forecast.high / j.forecast.low; };
  CHECK(width(judged[1]) > 1.5);
  CHECK(judged[1].forecast.evidence[static_cast<std::size_t>(Evidence::assumed)] > 0.5);
}

TEST_CASE("published rows as runs: what a simulation on their stack says is what is judged") {
  const std::vector<StackSpec> stacks = read_stacks();
  const std::vector<RunRow> published = published_runs("configs/measurements");
  std::size_t compared = 0;
  for (const char* framework : {"torchtitan", "nanotron", "SimuMax"}) {
    const auto row = std::find_if(published.begin(), published.end(), [&](const RunRow& r) {
      return r.unusable.empty() && r.memory_of != MemoryOf::nothing &&
             r.framework.find(framework) != std::string::npos && r.accumulation < 64;
    });
    REQUIRE(row != published.end());
    INFO(row->name);
    // As planner/cli/simulate/simulate.cpp: a run, its program with the stack's facts, every microbatch.
    const StackSpec stack = stack_of(row->framework, stacks);
    RunSpec run;
    run.model = row->model;
    run.layout = peak_program(*row, stack).layout;
    run.layout.chunk_layers.clear();
    run.seq = row->seq;
    run.global_batch = row->global_batch;
    run.precision = Precision::bf16;
    run.device = DeviceKind::cuda;
    const LiveMemory simulated = live_memory(
        step_program(run, stack).build(), [](int, int) { return 0.0; },
        stack.memory.first_rank_only ? Ranks::first_stage : Ranks::all);
    // Nothing is left out where no row of the reference is of the run's framework and model.
    std::vector<RunRow> others;
    std::copy_if(published.begin(), published.end(), std::back_inserter(others),
                 [&](const RunRow& r) { return r.group != row->group && r.memory_of != MemoryOf::nothing; });
    const MemoryModel model(memory_samples(others, stacks));
    const auto judged = judge_memory({*row}, others, stacks);
    CHECK(model.of_stack(stack).of(row->memory_of, simulated).bytes ==
          Approx(*judged.at(0).forecast.value).epsilon(1e-9));
    ++compared;
  }
  CHECK(compared == 3);
}

TEST_CASE("stacks that reserve more than others are known by it, and one that nobody measured lies between") {
  std::vector<MemorySample> samples;
  for (const auto& [stack, share] : {std::pair{"torchtitan", 0.1}, {"nanotron", 0.5}})
    for (const double dynamic : {10.0, 20.0, 30.0, 40.0})
      for (int model = 0; model < 3; ++model)
        samples.push_back({fmt::format("{} {}", stack, model),
                           stack,
                           MemoryOf::peak_reserved,
                           {10 * kGiB, dynamic * kGiB},
                           (10 + (1 + share) * dynamic) * kGiB});
  const MemoryModel model(samples);
  const auto reserved = [&](const char* stack) {
    return model.of_stack(read_stack(stack)).of(MemoryOf::peak_reserved, {10 * kGiB, 30 * kGiB});
  };
  const MemoryForecast little = reserved("torchtitan"), much = reserved("nanotron"), other = reserved("megatron-core");
  CHECK(little.bytes < other.bytes);
  CHECK(other.bytes < much.bytes);
  CHECK(other.high / other.low > much.high / much.low);  // errs as stacks that were left out whole
  CHECK(much.evidence[static_cast<std::size_t>(Evidence::published)] > 0);
  CHECK(other.evidence[static_cast<std::size_t>(Evidence::derived)] == Approx(1));
}
