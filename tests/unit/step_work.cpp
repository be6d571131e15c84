// What a published run asks of its hardware: no faster than the data sheet, and as its layout divides it.
#include "sim/fit/step_work.hpp"
#include "sim/fit/expert_loads.hpp"

#include <catch2/catch.hpp>

#include "configs/base/error.hpp"
#include "configs/files/find.hpp"
#include "configs/files/stack.hpp"
#include "tests/fixtures/published_reference.hpp"

using namespace wt;
using Catch::Contains;

namespace {

const BenchmarkTimes& benchmarks() { return test::published().benchmarks(); }

RunRow run() {
  RunRow row;
  row.gpu = "A100-80GB";
  row.interconnect = read_interconnect("8x200 Gb/s", 8);
  row.gpus = row.dp = row.shard_group = 16;
  row.zero_stage = 3;
  row.model = read_model("llama3-8b");
  row.seq = 4096;
  row.microbatch = 2;
  row.accumulation = 4;
  row.global_batch = 128;
  row.precision = precision_recipe("amp_bf16", "test");
  return row;
}

StepWork work(const RunRow& row) { return step_work(row, benchmarks()); }

double products_s(const StepWork& w) {
  return w.forward.products.sum_s() + w.backward.products.sum_s() + w.ends.products.sum_s();
}

}  // namespace

TEST_CASE("products take longer than the model's FLOPs at the data sheet's rate, backward twice as long") {
  const StepWork w = work(run());
  CHECK(products_s(w) + w.forward.attention_s + w.backward.attention_s > w.model_flops_s);
  CHECK(products_s(w) < 2 * w.model_flops_s);
  CHECK(w.backward.products.sum_s() == Approx(2 * w.forward.products.sum_s()).epsilon(0.05));
  CHECK(w.backward.attention_s > 2.5 * w.forward.attention_s);  // no library is as good in its backward pass
  CHECK(w.backward.attention_s < 3 * w.forward.attention_s);
}

TEST_CASE("as many times the microbatches are as many times the work, gathers included; the update stays") {
  RunRow more = run();
  more.accumulation *= 3;
  more.global_batch *= 3;
  const StepWork one = work(run()), three = work(more);
  CHECK(three.forward.products.sum_s() == Approx(3 * one.forward.products.sum_s()));
  CHECK(three.backward.gather_s == Approx(3 * one.backward.gather_s));
  CHECK(three.optimizer_s == Approx(one.optimizer_s));
}

TEST_CASE("recompute adds the forward pass to the backward one") {
  RunRow again = run();
  again.recompute = Recompute::block;
  CHECK(work(again).backward.products.sum_s() ==
        Approx(work(run()).backward.products.sum_s() + work(run()).forward.products.sum_s()).epsilon(0.01));
  CHECK(work(again).forward.products.sum_s() == Approx(work(run()).forward.products.sum_s()));
}

TEST_CASE("a tensor group shares the products and waits for its collectives") {
  RunRow cut = run();
  cut.tp = 4, cut.dp = cut.shard_group = 4, cut.zero_stage = 0;
  cut.accumulation = 16;
  const StepWork w = work(cut);
  CHECK(products_s(w) == Approx(products_s(work(run()))).epsilon(0.15));  // a quarter of four times the tokens
  CHECK(products_s(w) > products_s(work(run())));                         // narrower products are less efficient
  // Two all-reduces a layer, a microbatch and a pass, and those of embedding and output projection.
  CHECK(w.forward.tensor_calls == (2 * 32 + 3) * 16);
  CHECK(w.forward.gather_s == 0);
  CHECK(w.replicas_s > 0);
  CHECK(work(run()).forward.tensor_s == 0);
}

TEST_CASE("a stage has its share of the layers, and sends activations") {
  RunRow cut = run();
  cut.pp = 4, cut.dp = cut.shard_group = 4, cut.zero_stage = 0;
  cut.accumulation = 16;
  const StepWork whole = work(run()), stage = work(cut);
  CHECK(stage.forward.products.sum_s() ==
        Approx(whole.forward.products.sum_s()));  // a quarter of the layers, four times the microbatches
  CHECK(stage.send_s > 0);
  CHECK(stage.stages_over_nodes);
  CHECK(whole.send_s == 0);
}

TEST_CASE("ranks wait for the fullest one, unless routing was forced: experts, their rows' exchange and nothing else") {
  RunRow moe = run();
  moe.gpu = "H100-80GB";
  moe.model = read_model("qwen3-30b-a3b");
  moe.ep = 8;
  const StepWork uneven = work(moe);
  const double fullest = expert_loads(moe).fullest;
  moe.routing = RunRow::Routing::balanced;
  const StepWork even = work(moe);
  CHECK(uneven.forward.products.sum_s() > even.forward.products.sum_s());
  CHECK(uneven.forward.products.sum_s() < fullest * even.forward.products.sum_s());
  CHECK(uneven.forward.exchange_s > even.forward.exchange_s);
  CHECK(uneven.forward.attention_s == even.forward.attention_s);
  CHECK(uneven.forward.gather_s == even.forward.gather_s);
  CHECK(uneven.ends.products.sum_s() == even.ends.products.sum_s());
}

TEST_CASE("loads of expert ranks are recorded ones unless the row says even") {
  RunRow moe = run();
  moe.model = read_model("mixtral-8x7b");
  using Routing = RunRow::Routing;
  const auto loads = [&](std::int64_t ranks, Routing routing = Routing::unsaid) {
    moe.ep = ranks, moe.routing = routing;
    return expert_loads(moe);
  };
  double before = 1;
  for (const char* name : {"mixtral-8x7b", "olmoe-1b-7b", "qwen3-30b-a3b", "dbrx"}) {
    moe.model = read_model(name);
    CHECK(loads(1).fullest == Approx(1));
    CHECK_FALSE(loads(1).routing.empty());
    before = 1;
    for (std::int64_t ranks = 2; ranks <= moe.model.experts; ranks *= 2) {
      INFO(name << " over " << ranks);
      // The fullest of halves has at least half of its whole; a rank has at most all rows, of its experts' tokens.
      const double fullest = loads(ranks).fullest;
      CHECK(fullest >= before);
      CHECK(fullest <= 2 * before);
      before = fullest;
    }
    CHECK(before > 1);
    CHECK(before <= static_cast<double>(moe.model.experts) / static_cast<double>(moe.model.top_k));
  }
  moe.model = read_model("mixtral-8x7b");
  moe.model.name = "Mixtral-8x22B";
  CHECK(loads(8).assumed == "routing as other models train, balanced by loss");
  moe.model.name = "Grok-1";
  CHECK(loads(8).assumed == "routing as other models train, balanced by loss");
  CHECK(loads(8, Routing::balanced).fullest == 1);
  CHECK(loads(8, Routing::balanced).assumed.empty());
  CHECK(loads(8, Routing::natural).fullest > 1);
  CHECK(loads(3).fullest == 1);                // 8 experts over 3 ranks: no layout of ours
  CHECK(expert_loads(run()).assumed.empty());  // dense
}

TEST_CASE("a dispatcher that sends a token once to each place moves fewer bytes") {
  RunRow moe = run();
  moe.gpu = "H100-80GB";
  moe.model = read_model("qwen3-30b-a3b");
  moe.ep = 16;
  const double all = work(moe).forward.exchange_s;
  moe.dispatcher = Dispatcher::deepep;
  CHECK(work(moe).forward.exchange_s < 0.01 * all);  // the counts
  const double once = work(moe).forward.once_exchange_s;
  // Two nodes, eight experts a token: nearly one copy to each node in place of four.
  CHECK(once < 0.35 * all);
  CHECK(once > 0.2 * all);
  // Beside another microbatch's computation as many travel.
  StackSpec megatron;
  megatron.memory.resident_weights = true;
  moe.zero_stage = 1;
  const double before = step_work(moe, benchmarks(), megatron).forward.once_exchange_s;
  moe.exchange_overlapped = true;
  const StepWork overlapped = step_work(moe, benchmarks(), megatron);
  CHECK(overlapped.exchange_overlap);
  CHECK(overlapped.forward.once_exchange_s == Approx(before));
}

TEST_CASE("a GPU without bf16 runs fp32 and fp16") {
  RunRow volta = run();
  volta.gpu = "V100-SXM";
  volta.precision = precision_recipe("amp_fp16", "row");
  const double half = products_s(work(volta));
  CHECK(half > 0);
  volta.precision = precision_recipe("fp32", "row");
  CHECK(products_s(work(volta)) > 2 * half);  // a tenth of the rate, without tensor cores
  volta.precision = precision_recipe("amp_bf16", "row");
  CHECK_THROWS_WITH(work(volta), Catch::Contains("no bf16 products on V100"));
}

TEST_CASE("experts over the ranks of tensor groups: as much work, and no rows gathered inside a group") {
  RunRow cut = run();
  cut.gpu = "H100-80GB";
  cut.model = read_model("qwen3-30b-a3b");
  cut.tp = 4, cut.dp = cut.shard_group = 4, cut.zero_stage = 1;
  cut.sequence_parallel = true;
  cut.accumulation = 16;
  cut.ep = 4;
  cut.routing = RunRow::Routing::balanced;  // histograms are more uneven over more ranks
  RunRow own = cut;
  own.whole_experts = true;
  own.ep = 16;  // one of its experts to each rank that had a quarter of four
  const StepWork a = work(cut), b = work(own);
  CHECK(b.forward.products.sum_s() < a.forward.products.sum_s());  // of whole experts, not of a quarter of their width
  CHECK(b.forward.products.sum_s() > 0.5 * a.forward.products.sum_s());
  CHECK(b.forward.tensor_s < 0.5 * a.forward.tensor_s);  // rows are not gathered inside the tensor group
  CHECK(b.forward.exchange_s == Approx(a.forward.exchange_s).epsilon(0.05));  // all of a node's rows, half to another
  own.ep = 4;                                                                 // the tensor group's own ranks
  CHECK(work(own).forward.exchange_s > 0);
  CHECK(work(own).forward.exchange_s < b.forward.exchange_s);
  own.ep = 6;
  CHECK_THROWS_WITH(work(own), Contains("experts over 6 ranks among 4 data-parallel ones x tensor groups of 4"));
}

TEST_CASE("attention that is not fused moves its scores through memory") {
  StackSpec unfused;
  unfused.attention = AttentionKernels::unfused;
  const StepWork old = step_work(run(), benchmarks(), unfused);
  CHECK(old.forward.attention_s == 0);
  const double scores = 4.0 * 2 * 32 * 32 * 4096 * 4096;  // microbatches x sequences x layers x heads x square
  CHECK(old.forward.memory_s - work(run()).forward.memory_s == Approx(scores * 15 / 2.039e12).epsilon(0.01));
}

TEST_CASE("what cannot be timed says why") {
  const auto reason = [](const RunRow& row) {
    try {
      work(row);
    } catch (const Error& e) {
      CHECK(e.code() == Code::usage);
      return std::string(e.what());
    }
    return std::string("no error");
  };
  RunRow row = run();
  row.gpu = "TPU v5p";
  CHECK_THAT(reason(row), Contains("no data sheet of 'TPU v5p'"));
  row = run();
  row.unusable = "microbatch not said";
  CHECK(reason(row) == "microbatch not said");
  row = run();
  row.tp = 3, row.zero_stage = 0;
  CHECK_THAT(reason(row), Contains("tensor 3"));
}

TEST_CASE("half the adapters take twice the time, but for latency") {
  RunRow row = run();
  const auto seconds = [&](const std::string& said, std::int64_t gpus_per_node, RankGroup group) {
    row.interconnect = read_interconnect(said, gpus_per_node);
    const CollectiveMachine machine = machine_of(row.gpu, row.interconnect);
    return benchmarks().collectives->seconds({OpKind::all_gather, 4e9, group, machine});
  };
  const double fast = seconds("8x200G", 8, {16, 2});
  CHECK(seconds("4x200G", 8, {16, 2}) == Approx(2 * fast).epsilon(0.1));
  CHECK(seconds("4x200G", 8, {1, 1}) == 0);
  // A group that has all GPUs of a node has all of its adapters, however many those are.
  CHECK(seconds("4x400G", 4, {8, 2}) < 1.05 * fast);
  CHECK(RankGroup::strided(16, 4, 8).fewest() == 2);
  CHECK(RankGroup::strided(16, 16, 8).nodes == 16);
  CHECK(RankGroup::strided(12, 1, 8).fewest() == 4);
}

TEST_CASE("frameworks find their stack by the longest word, and unknown ones are themselves") {
  const std::vector<StackSpec> stacks = read_stacks();
  CHECK(stack_of("NeMo/Megatron-Core", stacks).name == "nemo");
  CHECK(stack_of("Megatron-LM (SimuMax validation)", stacks).name == "megatron-core");
  CHECK(stack_of("Megatron-LM", stacks).name == "megatron-lm");
  CHECK(stack_of("Megatron-DeepSpeed", stacks).name == "megatron-deepspeed");
  CHECK(stack_of("LLM Foundry/Composer + PyTorch FSDP1", stacks).name == "llm-foundry");
  CHECK(stack_of("Homegrown 2", stacks).name == "Homegrown 2");
  CHECK_THROWS_WITH(read_stack("nanotrom"), Contains("nanotron"));
}

TEST_CASE("each product has the time of its format, embedding and output projection those of 16 bits") {
  RunRow narrow = run();
  narrow.gpu = "GB200", narrow.interconnect = read_interconnect("8x400 Gb/s", 8);
  const StepWork wide = work(narrow);
  CHECK(wide.forward.products.fp8_s == 0);
  narrow.precision = precision_recipe("amp_mxfp8", "test");
  const StepWork eight = work(narrow);
  CHECK(eight.forward.products.wide_s == 0);
  CHECK(eight.forward.products.fp8_s < 0.7 * wide.forward.products.wide_s);
  CHECK(eight.ends.products.wide_s == Approx(wide.ends.products.wide_s));
  CHECK(eight.ends.products.fp8_s == 0);
  narrow.precision = precision_recipe("amp_nvfp4", "test");
  const StepWork four = work(narrow);
  CHECK(four.forward.products.fp4_s < 0.7 * eight.forward.products.fp8_s);
  narrow.precision.precisions.weight_gradients = NumberFormat::bf16;
  const StepWork mixed = work(narrow);
  CHECK(mixed.forward.products.sum_s() == Approx(four.forward.products.fp4_s));
  CHECK(mixed.backward.products.wide_s == Approx(wide.backward.products.wide_s / 2).epsilon(0.1));
  CHECK(mixed.backward.products.fp4_s == Approx(four.backward.products.fp4_s / 2).epsilon(0.1));
}

TEST_CASE("fp32 on CUDA cores takes longer than TF32, and passes twice the bytes of 16 bits") {
  RunRow wide = run();
  const StepWork usual = work(wide);
  wide.precision = precision_recipe("tf32", "test");
  const StepWork tf32 = work(wide);
  CHECK(tf32.forward.products.wide_s > 1.8 * usual.forward.products.wide_s);
  CHECK(tf32.forward.memory_s > 1.8 * usual.forward.memory_s);
  CHECK(tf32.forward.attention_s == Approx(2 * usual.forward.attention_s));
  wide.precision = precision_recipe("fp32", "test");
  const double cores = 19.5 / 156;  // A100's data sheet, of its TF32 tensor cores
  CHECK(work(wide).forward.attention_s == Approx(tf32.forward.attention_s / cores));
  CHECK(work(wide).forward.products.wide_s > 4 * tf32.forward.products.wide_s);
}
