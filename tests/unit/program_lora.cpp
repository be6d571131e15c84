// The step program of a run with adapters: what frozen weights leave out, and what the factors add, in closed form.
#include <catch2/catch.hpp>

#include "configs/base/number.hpp"
#include "configs/files/adapted_modules.hpp"
#include "configs/files/run.hpp"
#include "configs/files/stack_layouts.hpp"
#include "configs/files/study.hpp"
#include "sim/program/compose/sizes.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "tests/fixtures/fake_cost.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using namespace wt::test;

namespace {

const LoraSpec kLora{.rank = 4, .alpha = 8, .target_modules = {"q_proj", "v_proj", "o_proj"}};

/// Of small_model: q (512, 512), v (128, 512), output (512, 512) in each layer.
constexpr std::int64_t kFactorsOfLayer = 4 * (1024 + 640 + 1024);

ProgramOptions options_of(bool lora, std::int64_t microbatches = 2, Precision precision = Precision::bf16) {
  ProgramOptions out{64, microbatches, precision};
  if (lora) out.lora = adapter_shape(small_model(), kLora);
  return out;
}

Program program_of(const Layout& layout, const ProgramOptions& options, std::size_t stage = 0) {
  return build_program_set(small_model(), layout, options).programs.at(stage);
}

double kept(const Program& program, const std::string& name) {
  double sum = 0;
  for (const Buffer& each : program.resident)
    if (each.name == name) sum += each.bytes.fixed;
  return sum;
}

const Op* find(const std::vector<OpInstance>& ops, const std::string& id) {
  for (const OpInstance& each : ops)
    if (each.id() == id) return each.op;
  return nullptr;
}

/// Of products with a weight, at so many rows of experts in each layer and microbatch.
double product_flops(const Program& program, double rows) {
  double sum = 0;
  for (const OpInstance& each : unroll(program))
    for (const WorkItem& item : each.op->work)
      if (item.kernel == Kernel::gemm || item.kernel == Kernel::grouped_gemm) sum += item.flops(rows);
  return sum;
}

/// Data-parallel, with experts elsewhere, with weights that stay, over contexts, in stages.
std::vector<Layout> layouts() {
  std::vector<Layout> out{{}, {2, 2, 2, 1, Recompute::none, {}}, {1, 4, 4, 1, Recompute::block, {}}};
  out.push_back(out[1]), out.back().reshard_after_forward = out.back().reduce_every_microbatch = false;
  out.push_back(out[1]), out.back().expert = 1, out.back().context = 2;
  out.push_back(out[1]), out.back().pipeline = 3;
  out.back().reshard_after_forward = out.back().reduce_every_microbatch = false;
  out.push_back(out.back()), out.back().chunk_layers = {0, 2, 1};  // the embedding alone
  return out;
}

std::string run_text(const std::string& peft, const std::string& more = "", const std::string& model = "") {
  return "{model: {name: m, n_layers: 2, d_model: 64, n_heads: 4, vocab_size: 99, attn_config: {kv_n_heads: 2}, " +
         model + "ffn_config: {ffn_hidden_size: 128}, peft_config: " + peft +
         "}, max_duration: 1ba, max_seq_len: 64, global_train_batch_size: 8, device_train_microbatch_size: 1" + more +
         "}";
}

const std::string kPeft = "{peft_type: LORA, r: 4, lora_alpha: 8, target_modules: [q_proj, v_proj]}";

RunSpec run_of(const std::string& text) { return run_from_text(text, "run.yaml"); }

}  // namespace

TEST_CASE("a run says its adapters, and is written and read back with them") {
  const RunSpec run = run_of(run_text(kPeft));
  REQUIRE(run.lora);
  CHECK(*run.lora == LoraSpec{.rank = 4, .alpha = 8, .target_modules = {"q_proj", "v_proj"}});
  CHECK(run_of(run_to_yaml(run)).lora == run.lora);
  // In the words of a config.json, too.
  const RunSpec theirs = run_of(
      "{model: {model_type: llama, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: "
      "4, num_key_value_heads: 2, vocab_size: 99, peft_config: " +
      kPeft + "}, max_duration: 1ba, max_seq_len: 64, global_train_batch_size: 8, device_train_microbatch_size: 1}");
  CHECK(theirs.lora == run.lora);
  const ProgramOptions options = program_options(run);
  REQUIRE(options.lora);
  CHECK(options.lora->elements() == 2 * 4 * ((64 + 64) + (32 + 64)));
  CHECK_FALSE(run_of(run_text(kPeft).replace(run_text(kPeft).find(", peft_config"), 15 + kPeft.size(), "")).lora);
}

TEST_CASE("what adapters are not trained with is refused by name") {
  const auto refusal = [](const std::string& more, const std::string& model = "", const std::string& peft = kPeft) {
    return usage_error([&] { run_of(run_text(peft, more, model)); });
  };
  CHECK(refusal("") == "no error");
  const auto layout = [&](const std::string& keys) { return refusal(", fsdp_config: {" + keys + "}"); };
  using Catch::Contains;
  CHECK_THAT(layout("tensor_parallel_degree: 2"), Contains("peft_config: found it with tensor_parallel_degree 2"));
  CHECK_THAT(layout("pipeline_parallel_degree: 2, pipeline_schedule: zero_bubble, reshard_after_forward: false, "
                    "gradient_reduction: step"),
             Contains("allowed with adapters is 1f1b"));
  CHECK_THAT(layout("data_parallel_replicate_degree: 2, optimizer_shard_degree: 2"),
             Contains("allowed with adapters is data_parallel_shard_degree"));
  CHECK_THAT(layout("activation_checkpointing: true, activation_checkpointing_target: attention"),
             Contains("allowed with adapters is whole blocks"));
  CHECK_THAT(layout("mixed_precision: PURE"), Contains("found it with mixed_precision PURE"));
  CHECK_THAT(refusal(", optimizer: {name: muon}"), Contains("found it with optimizer muon"));
  CHECK_THAT(refusal(", optimizer: {name: adamw, offload_fraction: 0.5}"), Contains("offload_fraction 0.5"));
  CHECK_THAT(refusal("", "", "{r: 4, target_modules: [gate_proj]}"), Contains("found gate_proj"));
  CHECK_THAT(usage_error([] {
               ModelSpec deep = small_model();
               deep.mtp_layers = 1;
               adapter_shape(deep, kLora);
             }),
             Contains("found multi-token prediction"));
}

TEST_CASE("a study of adapters searches among layouts that take them, and saves masters of the model alone") {
  const auto study = [](const std::string& search) {
    const TempDirectory folder;
    write_bytes(
        folder / "study.yaml",
        "{model: {name: m, n_layers: 2, d_model: 64, n_heads: 4, vocab_size: 99, ffn_config: "
        "{ffn_hidden_size: 128}, peft_config: " +
            kPeft +
            "}, cluster: hgx-h100, gpus: 8, tokens: 1B, max_seq_len: 64, global_train_batch_size: 8, search: {" +
            search + "}}");
    return read_study((folder / "study.yaml").string());
  };
  const StudySpec asked = study("");
  REQUIRE(asked.lora);
  const double weights = as_double(asked.model.total_parameters()), factors = as_double(asked.adapters()->elements());
  CHECK(asked.checkpoint.bytes_per_parameter * weights == Approx(4 * weights + 12 * factors));
  CHECK(asked.flops_per_token() == run_of(run_text(kPeft)).flops_per_token() + 4 * 2 * 2 * 32 * 64 +
                                       6 * 2 * 4 * 32);  // no shared keys and values here
  const auto refusal = [&](const std::string& search) { return usage_error([&] { study(search); }); };
  for (const char* refused : {"tensor_parallel_degree: 2", "pipeline_parallel_degree: 2", "optimizer_shard_degree: 8",
                              "expert_copies: 1", "recompute: attention", "overlap_expert_exchange: true"}) {
    INFO(refused);
    CHECK_THAT(refusal(refused), Catch::Contains("beside model.peft_config"));
  }
  CHECK(refusal("tensor_parallel_degree: 1, recompute: [none, block], expert_copies: 0") == "no error");
  const StackLayouts all = StackLayouts::all(), some = all.with_adapters();
  CHECK(some.schedules.empty());
  CHECK(some.recompute == std::vector<Recompute>{Recompute::none, Recompute::block});
  CHECK_FALSE(some.tensor);
  CHECK_FALSE(some.optimizer_shard);
}

TEST_CASE("gradients of the adapters alone are summed and updated, once a step") {
  const Layout layout{2, 2, 2, 1, Recompute::none, {}};
  const Program program = program_of(layout, options_of(true));
  const std::vector<OpInstance> ops = unroll(program);
  for (const OpInstance& each : ops)
    for (const Action gone : {Action::reduce_gradients, Action::accumulate, Action::reduce_replicas, Action::refresh,
                              Action::exchange_copies, Action::add_copies, Action::reduce_norm})
      if (each.op->group != Group::adapter) {
        INFO(each.id());
        CHECK(each.op->action != gone);
      }
  CHECK(find(ops, "mb0.embed.bwd") == nullptr);
  const Op* reduce = find(ops, "adapter.reduce");
  REQUIRE(reduce);
  CHECK(reduce->kind == OpKind::all_reduce);
  CHECK(reduce->collective.axis == Axis::world);
  CHECK(reduce->collective.bytes.fixed == 4 * 3 * kFactorsOfLayer);
  CHECK(find(ops, "optimizer")->work.front().rows.fixed == 3 * kFactorsOfLayer);
  CHECK(find(ops, "norm")->work.front().rows.fixed == 3 * kFactorsOfLayer);
  CHECK(find(unroll(program_of({}, options_of(true))), "adapter.reduce") == nullptr);  // one rank has them whole
}

TEST_CASE("moments and gradients are the adapters' alone, masters those of the model, too") {
  for (const Layout& layout : {layouts()[1], layouts()[3]}) {
    const Program with = program_of(layout, options_of(true)), full = program_of(layout, options_of(false));
    constexpr double kFactors = 3 * kFactorsOfLayer;
    CHECK(kept(with, "moments") == 8 * kFactors);
    CHECK(kept(with, "masters") == kept(full, "masters") + 4 * kFactors);
    CHECK(kept(with, "adapters") == 2 * kFactors);
    CHECK(kept(with, "adapter gradients") == 4 * kFactors);
    for (const char* gone : {"gradient shards", "gradient slots", "outer gradients"}) CHECK(kept(with, gone) == 0);
  }
}

TEST_CASE("a step beside frozen weights gives everything back, and needs less memory than one that trains them") {
  for (const Layout& layout : layouts())
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (std::int64_t stage = 0; stage < layout.pipeline; ++stage) {
        INFO(layout.name() << " stage " << stage);
        const auto peak = [&](bool lora) {
          const Program program = program_of(layout, options_of(lora, 3, precision), static_cast<std::size_t>(stage));
          const MemoryReplay m = replay_memory(program, [](int, int) { return 256.0; });
          CHECK(m.live_bytes.back() == Approx(m.resident_bytes));
          return m.peak_bytes - m.resident_bytes;
        };
        const double with = peak(true), full = peak(false);
        if (stage == 0 && !layout.chunk_layers.empty())
          CHECK(with == full);  // the embedding alone
        else
          CHECK(with < full);
      }
}

TEST_CASE("products with frozen weights cost 4 FLOPs a weight and token, those with factors 6") {
  const ModelSpec model = small_model();
  const double tokens = 2 * 64, rows = 64 * 4;  // two microbatches of one sequence
  const Program with = program_of({}, options_of(true)), full = program_of({}, options_of(false));
  const double weights = tokens * static_cast<double>(model.product_weights()), factors = tokens * 3 * kFactorsOfLayer;
  CHECK(product_flops(full, rows) == Approx(6 * weights));
  CHECK(product_flops(with, rows) == Approx(4 * weights + 6 * factors));
  const AdapterShape shape = adapter_shape(model, kLora);
  CHECK(flops_per_token(model, shape, 64) - model.flops_per_token(64) == Approx((6 * factors - 2 * weights) / tokens));
  CHECK(flops_per_token(model, {}, 64) == model.flops_per_token(64));
}

TEST_CASE("one adapted layer costs the same wherever it is") {
  const auto step = [](const std::string& target) {
    ProgramOptions options = options_of(false);
    options.lora = adapter_shape(small_model(), {.rank = 64, .alpha = 8, .target_modules = {target}});
    Layout layout;
    layout.shard = 2;
    return product_flops(program_of(layout, options), 100);
  };
  CHECK(step("1.self_attn.q_proj") == step("2.self_attn.q_proj"));
  CHECK(step("1.self_attn.q_proj") < step("q_proj"));
}

TEST_CASE("every stage of a pipeline sums the factors of its layers over its shards and replicas") {
  const Layout layout = layouts()[5];
  for (std::size_t stage = 0; stage < 3; ++stage) {
    const Program program = program_of(layout, options_of(true, 3), stage);
    const std::vector<OpInstance> ops = unroll(program);
    const Op *shards = find(ops, "adapter.reduce"), *replicas = find(ops, "adapter.replicas");
    REQUIRE(shards);
    REQUIRE(replicas);
    CHECK(shards->collective.axis == Axis::shard);
    CHECK(replicas->collective.axis == Axis::replicate);
    CHECK(shards->collective.bytes.fixed == 4 * kFactorsOfLayer);
    CHECK(kept(program, "moments") == 8 * kFactorsOfLayer);
    CHECK(find(ops, "norm.stages"));
  }
}

TEST_CASE("what a frozen product's weight gradient would read is not kept") {
  const ModelSpec model = small_model();
  const auto sizes = [&](const std::vector<std::string>& targets) {
    ProgramOptions options = options_of(false);
    if (!targets.empty()) options.lora = adapter_shape(model, {.rank = 4, .alpha = 8, .target_modules = targets});
    return Sizes(model, {}, options);
  };
  const Sizes full = sizes({}), q = sizes({"q_proj"}), output = sizes({"o_proj"});
  const double x = 64 * 512 * 2, low = 64 * 4 * 2;
  CHECK(full.first_norm == x);
  CHECK(q.first_norm == x);  // A reads it
  CHECK(output.first_norm == 0);
  CHECK(full.experts_saved.fixed - q.experts_saved.fixed == 64 * 4 * 1024 * 2);  // the second product's input
  CHECK(q.experts_saved.fixed == full.gate_up.fixed);
  CHECK(full.normed_fp32 == q.normed_fp32);
  CHECK(full.router_input_copied - q.router_input_copied == 64 * 512 * 4);  // its weight's copy is still read
  CHECK(output.attention - full.attention == low);
  CHECK(q.attention - full.attention == low - x);  // attention's output by token, which no weight's gradient reads
  CHECK(q.expert_down_weight + q.head_weight + q.largest_dense_weight == 0);
}
