// Memory of a step in closed form, against the formulas of the papers it comes from, and the fit of what shapes do not
// say.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "configs/spec/stack.hpp"
#include "configs/spec/support/error.hpp"
#include "sim/cost/memory/layer_activations.hpp"
#include "sim/cost/memory/run_memory.hpp"
#include "sim/validate/memory.hpp"

using namespace wt;

namespace {

constexpr double kGiB = 1 << 30;

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
  row.flash_attention = false;
  row.source = std::string("s");
  row.group = std::string("s | gpt");
  return row;
}

/// Korthikanti et al. 2022: bytes of one layer's activations over s b h, with tensor parallelism of t.
double over_sbh(const RunRow& row) {
  const double sbh = static_cast<double>(row.seq * row.microbatch * row.model.d_model);
  const auto layer = layer_activations(row, 0, read_stack("megatron-lm").memory);
  return layer.split(row.tp, row.sequence_parallel) * static_cast<double>(row.seq * row.microbatch) / sbh;
}

MemorySample sample(const RunRow& row) {
  const StackSpec stack = read_stack("nanotron");
  return {&row, run_memory(row, stack), row.group, "r", stack};
}

}  // namespace

TEST_CASE("activations of a layer are the terms of Korthikanti et al.") {
  RunRow row = gpt(48, 6144, 64);
  const double scores = 5.0 * 64 * 2048 / 6144;
  CHECK(over_sbh(row) == Approx(34 + scores));  // equation 1
  row.tp = 8;
  CHECK(over_sbh(row) == Approx(10 + 24.0 / 8 + scores / 8));  // equation 2
  row.sequence_parallel = true;
  CHECK(over_sbh(row) == Approx((34 + scores) / 8));  // equation 4
  row.recompute = RunRow::Recompute::selective;
  CHECK(over_sbh(row) == Approx(34.0 / 8));  // table 2
  row.sequence_parallel = false;
  row.recompute = RunRow::Recompute::full;
  CHECK(over_sbh(row) == Approx(2));  // table 2
}

TEST_CASE("a gated layer keeps gate, up and their product, and the activated gate where it is not fused") {
  RunRow row = gpt(1, 4096, 32);
  row.model.activation = Activation::swiglu;
  row.model.ffn = 14336;
  row.model.kv_heads = 8;
  row.flash_attention = true;
  const double attention = 2.0 * (4096 + 2 * 1024 + 4096) + 4 * 32;
  CHECK(layer_activations(row, 0, read_stack("megatron-core").memory).products == Approx(attention + 2.0 * 3 * 14336));
  CHECK(layer_activations(row, 0, read_stack("nanotron").memory).products == Approx(attention + 2.0 * 4 * 14336));
  row.cp = 2;  // heads are exchanged: the attention's output twice
  CHECK(layer_activations(row, 0, read_stack("megatron-core").memory).products ==
        Approx(attention + 2.0 * 4096 + 2.0 * 3 * 14336));
}

TEST_CASE("selective recompute by op keeps the input, half of the products and the attention") {
  RunRow row = gpt(1, 4096, 32);
  row.model.activation = Activation::swiglu;
  row.model.ffn = 14336;
  row.model.kv_heads = 8;
  row.flash_attention = true;
  row.recompute = RunRow::Recompute::selective;
  const double whole = whole_layer_activations(row, 0, read_stack("torchtitan").memory).split(1, false);
  CHECK(layer_activations(row, 0, read_stack("torchtitan").memory).split(1, false) ==
        Approx(whole));  // no scores to drop
  row.recompute_text = std::string("selective (per-op)");
  CHECK(layer_activations(row, 0, read_stack("torchtitan").memory).split(1, false) ==
        Approx(2 * (4096 + (4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096) / 2.0 + 4096) + 4 * 32));
}

TEST_CASE(
    "FSDP gathers the widest unit twice and has a gradient of it, in a pipeline it keeps its stage and gradients") {
  RunRow row = gpt(8, 1024, 16);
  row.zero_stage = 3;
  row.dp = row.gpus = row.shard_group = 8;
  CHECK(run_memory(row, read_stack("torchtitan")).scratch == Approx(3 * 2.0 * 51200 * 1024));  // embedding and head
  row.model.vocab = 1024;
  CHECK(run_memory(row, read_stack("torchtitan")).scratch ==
        Approx(3 * 2.0 * static_cast<double>(row.model.dense_parameters(0))));
  row.pp = 2;
  row.dp = row.shard_group = 4;
  row.accumulation = 8;
  CHECK(run_memory(row, read_stack("torchtitan")).scratch ==
        Approx(6.0 * static_cast<double>(4 * row.model.dense_parameters(0) + 1024 * 1024)));
}

TEST_CASE("gathered inputs that come back late are two a layer, without a pipeline and after eight microbatches") {
  RunRow row = gpt(6, 1024, 16);
  row.gpus = row.tp = 4;
  row.sequence_parallel = true;
  row.accumulation = 4;
  const auto scratch = [&] { return run_memory(row, read_stack("nanotron")).scratch; };
  CHECK(scratch() == Approx(0.5 * 2 * 6 * 2.0 * 1024 * 2048));
  row.accumulation = 64;
  CHECK(scratch() == Approx(2 * 6 * 2.0 * 1024 * 2048));
  row.sequence_parallel = false;
  CHECK(scratch() == 0);
  row.sequence_parallel = true;
  row.pp = 2;
  CHECK(scratch() == 0);
}

TEST_CASE("a layer of experts keeps top-k rows a token, in the experts' order") {
  RunRow row = gpt(1, 2048, 16);
  row.flash_attention = true;
  const StackSpec stack = read_stack("megatron-core");
  const double dense = layer_activations(row, 0, stack.memory).products;
  row.model.experts = 64;
  row.model.top_k = 8;
  row.model.ffn = 1024;
  CHECK(layer_activations(row, 0, stack.memory).products ==
        Approx(dense - 2.0 * 2 * 8192 + 8 * (2.0 * 2 * 2048 + 2.0 * 2 * 1024) + 8 * 64));
}

TEST_CASE("states by ZeRO stage: 18, 6 + 12 / N and 16 / N bytes a parameter") {
  RunRow row = gpt(4, 1024, 16);
  const auto parameters = static_cast<double>(row.model.total_parameters());
  const StackSpec stack = read_stack("megatron-lm");
  row.dp = row.gpus = 8;
  CHECK(run_memory(row, stack).states == Approx(18 * parameters));
  row.zero_stage = 1;
  row.shard_group = 8;
  CHECK(run_memory(row, stack).states == Approx((6 + 12.0 / 8) * parameters));
  row.zero_stage = 3;
  CHECK(run_memory(row, stack).states == Approx(16.0 / 8 * parameters));
  row.model.tied = true;
  CHECK(run_memory(row, stack).states == Approx(16.0 / 8 * (parameters - 51200 * 1024)));
}

TEST_CASE("microbatches in flight: 1F1B, and 1 + (p - 1) / (p v) of the first stage with v chunks") {
  RunRow row = gpt(24, 1024, 16);
  row.pp = 8;
  row.accumulation = 64;
  CHECK(in_flight(row, 0) == 8);
  CHECK(in_flight(row, 7) == 1);
  row.accumulation = 3;
  CHECK(in_flight(row, 0) == 3);
  row.accumulation = 64;
  row.vp = 3;
  CHECK(in_flight(row, 0) == Approx(8 * (1 + 7.0 / 24)));
}

TEST_CASE("stages of like numbers of layers, or of like cost with the output projection in it") {
  using Layers = std::vector<std::int64_t>;
  RunRow row = gpt(16, 2048, 32);
  row.model.activation = Activation::swiglu;
  row.model.ffn = 8192;
  row.model.vocab = 131072;  // costs four layers
  row.pp = 4;
  CHECK(layers_of_stages(row, read_stack("megatron-lm")) == Layers{4, 4, 4, 4});
  CHECK(layers_of_stages(row, read_stack("nanotron")) == Layers{6, 5, 5, 0});
  row.pp = 2;
  CHECK(layers_of_stages(row, read_stack("nanotron")) == Layers{11, 5});
  row.model.layers = 15;
  CHECK(layers_of_stages(row, read_stack("megatron-lm")) == Layers{8, 7});
}

TEST_CASE("the peak is the stage's that has most: the first by its microbatches, the last by its logits") {
  RunRow row = gpt(8, 1024, 16);
  row.flash_attention = true;
  row.gpus = row.pp = 2;
  row.accumulation = 8;
  const StackSpec stack = read_stack("megatron-lm");
  row.seq = 65536;
  row.model.vocab = 1024;
  const double layer = layer_activations(row, 0, stack.memory).split(1, false);
  CHECK(run_memory(row, stack).activations == Approx(4 * layer * 65536 * 2));
  row.model.vocab = 512000;
  CHECK(run_memory(row, stack).activations == Approx(4 * layer * 65536));
  CHECK(run_memory(row, stack).working == Approx(65536 * (12.0 * 512000 + 3 * 2 * 1024)));
}

TEST_CASE("Korthikanti et al.'s own figures") {
  const std::vector<StackSpec> stacks = read_stacks();
  std::size_t rows = 0;
  for (const RunRow& row : read_run_rows("configs/measurements/simulator_tables.csv")) {
    if (row.memory_of == MemoryOf::nothing) continue;
    const RunMemory memory = layer_memory(row, stack_of(row.framework, stacks));
    INFO(row.name);
    CHECK((row.memory_of == MemoryOf::states ? memory.states : memory.activations) ==
          Approx(row.memory_bytes).epsilon(0.015));  // figure 7 was read off a plot
    ++rows;
  }
  CHECK(rows == 36);
}

TEST_CASE("more of a split never costs memory, more tokens always do") {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> from) {
    return *(from.begin() +
             std::uniform_int_distribution<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(from.size()) - 1)(random));
  };
  for (int i = 0; i < 200; ++i) {
    RunRow row = gpt(pick({4, 7, 16}), pick({1024, 4096}), 32);
    row.tp = pick({1, 2, 4});
    row.pp = pick({1, 2, 4});
    row.dp = pick({2, 8});
    row.accumulation = pick({1, 3, 16});
    row.flash_attention = pick({0, 1}) == 1;
    row.sequence_parallel = row.tp > 1;
    row.zero_stage = 1;
    row.shard_group = row.dp;
    const StackSpec stack = read_stack(pick({0, 1}) == 1 ? "megatron-core" : "torchtitan");
    const double peak = run_memory(row, stack).peak();
    const auto changed = [&](auto change) {
      RunRow other = row;
      change(other);
      return run_memory(other, stack).peak();
    };
    CHECK(changed([](RunRow& r) { r.zero_stage = 0; }) > peak);
    CHECK(changed([](RunRow& r) { r.microbatch *= 2; }) > peak);
    CHECK(changed([](RunRow& r) { r.recompute = RunRow::Recompute::selective; }) <= peak);
    if (row.tp > 1) CHECK(changed([](RunRow& r) { r.tp *= 2; }) < peak);
  }
}

TEST_CASE("workspace and fragmentation are recovered from memory made of them") {
  std::vector<RunRow> rows;
  for (const std::int64_t microbatch : {1, 2, 4, 8, 16})
    for (const std::int64_t layers : {1, 4}) {
      RunRow row = gpt(layers, 512, 8);
      row.seq = 512;
      row.microbatch = microbatch;
      row.memory_of = MemoryOf::peak_reserved;
      rows.push_back(row);
    }
  std::vector<MemorySample> samples;
  for (RunRow& row : rows) {
    samples.push_back(sample(row));
    row.memory_bytes = samples.back().memory.states + 1.4 * samples.back().memory.dynamic() + 0.5 * kGiB;
  }
  std::vector<const MemorySample*> all;
  for (const MemorySample& s : samples) all.push_back(&s);
  const MemoryConstants c = fit_memory(all, MemoryOf::peak_reserved);
  CHECK(c.fragmentation == Approx(1.4).epsilon(0.03));
  CHECK(c.workspace_bytes == Approx(0.5 * kGiB).epsilon(0.15));
  CHECK(fit_memory(all, MemoryOf::peak_allocated).fragmentation == 1);
  CHECK(fit_memory({}, MemoryOf::peak_reserved).fragmentation == Approx(1.15));
}

TEST_CASE("a row's own model has no part in its prediction, and rows without need say why") {
  std::vector<RunRow> rows;
  for (const char* group : {"a", "b"}) {
    RunRow row = gpt(8, 2048, 16);
    row.group = group;
    row.framework = "torchtitan";
    row.memory_of = MemoryOf::peak_allocated;
    row.memory_bytes = run_memory(row, read_stack("torchtitan")).peak() + (*group == 'a' ? 1 : 2) * kGiB;
    rows.push_back(row);
  }
  rows.push_back(gpt(8, 2048, 16));  // measures no memory
  rows.push_back(gpt(8, 2048, 16));
  rows.back().unusable = std::string("tp not said");
  const auto judged = judge_memory(rows, {}, read_stacks());
  REQUIRE(judged.size() == 3);
  CHECK(*judged[0].forecast.value > *judged[1].forecast.value);  // each has the other's workspace
  CHECK(judged[2].forecast.reason == "tp not said");
  CHECK(*judged[0].baseline.value == Approx(rows[1].memory_bytes));
  CHECK_THROWS_AS(judge_memory({gpt(8, 2048, 16)}, {}, {}), Error);
}

TEST_CASE("memory of a stack that nobody described is as uncertain as that of described ones taken for it") {
  std::vector<RunRow> reference;
  for (const auto& [framework, factor] : {std::pair{"torchtitan", 1.1}, {"nanotron", 0.6}, {"Megatron-LM", 1.5}})
    for (const std::int64_t layers : {2, 4, 6, 8}) {
      RunRow row = gpt(layers, 2048, 16);
      row.framework = framework;
      row.group = std::string(framework) + " | " + std::to_string(layers);
      row.memory_of = MemoryOf::peak_reserved;
      row.memory_bytes = factor * run_memory(row, StackSpec{}).peak();
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
