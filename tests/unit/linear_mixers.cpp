// Models whose layers differ in their mixer: gated delta net and Mamba-2 between layers of softmax attention, and
// layers that are a mixer alone. Against the modules of transformers' Qwen3-Next and Nemotron-H, written down parameter
// by parameter.
#include <catch2/catch.hpp>

#include "configs/base/yaml.hpp"
#include "configs/files/model.hpp"
#include "sim/program/compose/compose.hpp"
#include "sim/program/compose/tensor_slice.hpp"
#include "sim/program/memory/memory_replay.hpp"
#include "tests/fixtures/temp_directory.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Contains;
using test::usage_error;

namespace {

ModelSpec hugging_face(const std::string& json) {
  const test::TempDirectory folder;
  test::write_bytes(folder / "config.json", json);
  return read_model(folder.path().string());
}

std::string yaml_of(const ModelSpec& model) {
  YAML::Emitter out;
  model_to_yaml(model, out);
  return out.c_str();
}

std::string nemotron(const std::string& pattern, std::int64_t layers, const std::string& more = "") {
  return R"({"model_type": "nemotron_h", "hidden_size": 2688, "num_attention_heads": 32, "num_key_value_heads": 2,
             "head_dim": 128, "layer_norm_epsilon": 1e-5, "vocab_size": 131072, "intermediate_size": 1856,
             "moe_intermediate_size": 1856, "n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 1,
             "moe_shared_expert_intermediate_size": 3712, "routed_scaling_factor": 2.5, "norm_topk_prob": true,
             "mamba_num_heads": 64, "mamba_head_dim": 64, "ssm_state_size": 128, "conv_kernel": 4, "chunk_size": 128,)" +
         more + R"("n_groups": 8, "num_hidden_layers": )" + std::to_string(layers) +
         R"(, "hybrid_override_pattern": ")" + pattern + "\"}";
}

std::string qwen3_next(const std::string& more) {
  return R"({"model_type": "qwen3_next", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 16,
             "num_key_value_heads": 2, "head_dim": 256, "rms_norm_eps": 1e-6, "rope_theta": 10000000,
             "vocab_size": 151936, "intermediate_size": 5632, "moe_intermediate_size": 512,
             "shared_expert_intermediate_size": 512, "num_experts": 512, "num_experts_per_tok": 10,
             "norm_topk_prob": true, "decoder_sparse_step": 1, "partial_rotary_factor": 0.25, "router_aux_loss_coef": 0.001,
             "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
             "linear_num_key_heads": 16, )" +
         more + "}";
}

/// Four layers: Mamba-2 alone, and with an FFN; attention alone, and with an FFN.
ModelSpec small() {
  ModelSpec m;
  m.name = "small", m.layers = 4, m.d_model = 64, m.heads = m.kv_heads = 4, m.head_dim = 16, m.ffn = 96, m.vocab = 128;
  m.activation = Activation::gelu;
  m.ffn_layers.repeats = {false, true};
  m.linear = {LinearMixerSpec::Kind::mamba2, {{true, true, false, false}}, 2, 8, 32, 16, 4, 16};
  return m;
}

constexpr std::int64_t kSeq = 64;

Program program_of(const ModelSpec& model, const Layout& layout) {
  return build_program_set(model, layout, {kSeq, 1, Precision::bf16, false}).programs[0];
}

double product_flops(const Program& program, Direction direction) {
  double sum = 0;
  for (const OpInstance& instance : unroll(program))
    if (instance.op->direction == direction && instance.layer >= 0)
      for (const WorkItem& item : instance.op->work)
        if (item.kernel == Kernel::gemm || item.kernel == Kernel::attention) sum += item.flops(0);
  return sum;
}

}  // namespace

TEST_CASE("parameters of Qwen3-Next and Nemotron 3 Nano: their modules', and the published totals") {
  const std::int64_t d = 2688, inner = 64 * 64, conv = inner + 2 * 8 * 128;
  const std::int64_t mamba = d * (inner + conv + 64) + conv * (4 + 1) + 3 * 64 + inner + inner * d;
  const std::int64_t attention = d * 128 * (32 + 2 * 2) + 32 * 128 * d;
  const std::int64_t experts = 128 * d + 128 * 2 * d * 1856 + 2 * d * 3712;
  const ModelSpec nano = read_model("nemotron-3-nano-30b-a3b");
  CHECK(nano.total_parameters() ==
        23 * mamba + 6 * attention + 23 * experts + 52 * d + d + 2 * 131072 * d);        // a norm in each of 52 layers
  CHECK(static_cast<double>(nano.total_parameters()) == Approx(31.6e9).epsilon(0.002));  // the report's table 1
  CHECK(static_cast<double>(nano.active_parameters()) == Approx(3.6e9).epsilon(0.01));
  CHECK(static_cast<double>(nano.active_parameters() - nano.embedding_parameters()) == Approx(3.2e9).epsilon(0.01));

  const std::int64_t w = 2048, key = 16 * 128, value = 32 * 128;
  const std::int64_t delta_net =
      w * (2 * key + 2 * value) + w * 2 * 32 + 4 * (2 * key + value) + 2 * 32 + 128 + value * w;
  const std::int64_t gated = w * 256 * (2 * 16 + 2 * 2) + 16 * 256 * w + 2 * 256;
  const std::int64_t moe = 512 * w + (512 + 1) * 3 * w * 512;
  const ModelSpec next = read_model("qwen3-next-80b-a3b");
  CHECK(next.total_parameters() == 36 * delta_net + 12 * gated + 48 * (moe + 2 * w) + w + 2 * 151936 * w);
  CHECK(static_cast<double>(next.total_parameters()) == Approx(80e9).epsilon(0.01));
  // 3 B activated (model card), 3.9 B with both embeddings
  CHECK(static_cast<double>(next.active_parameters() - 2 * next.embedding_parameters()) == Approx(3.2e9).epsilon(0.05));
}

TEST_CASE("a Hugging Face config of these families is the preset, and our YAML gives it back") {
  const auto same = [](ModelSpec read, const char* preset) {
    const ModelSpec model = read_model(preset);
    read.name = model.name;
    CHECK(yaml_of(read) == yaml_of(model));
    YamlMap map = YamlMap::from_text(yaml_of(model), "model.yaml");
    CHECK(yaml_of(model_from_yaml(map)) == yaml_of(model));
    map.finish();
  };
  const char* nano = "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";
  same(hugging_face(nemotron(nano, 52)), "nemotron-3-nano-30b-a3b");
  same(hugging_face(qwen3_next(R"("full_attention_interval": 4, "linear_num_value_heads": 32)")), "qwen3-next-80b-a3b");
  const ModelSpec dense = hugging_face(nemotron("M-M*-", 5));  // Nemotron-H without experts
  CHECK(dense.layers == 3);
  CHECK(dense.experts == 0);
  CHECK((dense.linear_mixer(1) && !dense.linear_mixer(2) && !dense.feeds_forward(1) && dense.feeds_forward(2)));
}

TEST_CASE("bad values of linear mixers are refused by name") {
  const auto refused = [](const std::string& json) { return usage_error([&] { hugging_face(json); }); };
  CHECK_THAT(refused(nemotron("MX", 2)), Contains("hybrid_override_pattern: found \"MX\""));
  CHECK_THAT(refused(nemotron("EM", 2)), Contains("hybrid_override_pattern: found \"EM\""));
  CHECK_THAT(refused(nemotron("ME", 3)), Contains("a letter for each of num_hidden_layers"));
  CHECK_THAT(refused(nemotron("ME", 2, R"("use_bias": true, )")), Contains("use_bias: found true"));
  CHECK_THAT(refused(qwen3_next(R"("linear_num_value_heads": 24)")), Contains("linear_num_key_heads: found 16"));
  CHECK_THAT(refused(qwen3_next(R"("linear_num_value_heads": 32, "full_attention_interval": 0)")),
             Contains("full_attention_interval: found 0"));
  CHECK_THAT(refused(qwen3_next(R"("linear_num_value_heads": 32, "layer_types": ["mamba"])")),
             Contains("layer_types: found \"mamba\""));
  Layout layout;
  layout.shard = layout.context = 2;
  CHECK_THAT(usage_error([&] { layout.check(small(), "layout"); }), Contains("context parallelism 2"));
  layout = {};
  layout.tensor = 4;
  CHECK_THAT(usage_error([&] { layout.check(small(), "layout"); }), Contains("linear key heads"));
  for (const char* name : {"qwen3-next-80b-a3b", "nemotron-3-nano-30b-a3b"})
    CHECK_THAT(read_model(name).untrainable(), Catch::VectorContains(std::string("linear_config")));
}

TEST_CASE("every kind of mixer computes the FLOPs that the model counts") {
  for (const auto kind :
       {LinearMixerSpec::Kind::gated_delta_net, LinearMixerSpec::Kind::mamba2, LinearMixerSpec::Kind::lightning,
        LinearMixerSpec::Kind::kimi_delta, LinearMixerSpec::Kind::short_conv}) {
    ModelSpec m = small();
    m.linear.kind = kind;
    INFO(yaml_of(m));
    const double counted = m.flops_per_token(kSeq) / 3 - 2.0 * static_cast<double>(m.vocab * m.d_model);
    CHECK(product_flops(program_of(m, {}), Direction::forward) == Approx(kSeq * counted).epsilon(1e-12));
  }
}

TEST_CASE("the step program's products are the model's FLOPs, and a tensor group shares them") {
  const ModelSpec m = small();
  const Program whole = program_of(m, {});
  // A token of Mamba-2 forward: in and out projection, C B^T of 2 groups, then of 8 heads its product with x, the
  // chunk's state and what the state before it gives.
  const double rows = 2 * (64 * (2 * 128 + 2 * 64 + 8) + 128 * 64);
  const double kernel = 2 * (2 * 16 * 32 + 8 * (16 * 16 + 2 * 16 * 32));
  const double ffn = 2 * 2 * 64 * 96, attention = 2 * 4 * 64 * 64 + 2 * 2 * 64 * kSeq / 2;
  CHECK(product_flops(whole, Direction::forward) ==
        Approx(static_cast<double>(kSeq) * (2 * (rows + kernel) + 2 * attention + 2 * ffn)).epsilon(1e-12));
  CHECK(m.flops_per_token(kSeq) ==
        Approx(3 * (2 * (rows + kernel) + 2 * attention + 2 * ffn + 2 * 64 * 128)).epsilon(1e-12));
  Layout layout;
  layout.tensor = 2;
  for (const bool sequence : {false, true}) {
    layout.sequence_parallel = sequence;
    const Program part = program_of(m, layout);
    // The steps and decays of the heads are cut, too, so a rank has half of everything.
    for (const Direction direction : {Direction::forward, Direction::backward})
      CHECK(2 * product_flops(part, direction) == Approx(product_flops(whole, direction)).epsilon(1e-12));
  }
}

TEST_CASE("a delta net's chunked products: nine a head") {
  const LinearMixerSpec l{LinearMixerSpec::Kind::gated_delta_net, {}, 16, 32, 128, 128, 4, 64};
  // K K^T, Q K^T and W are C x K, U and the output C x V, the inverse C x C / 2; three of the state K x V.
  CHECK(l.flops() == 2 * 32 * (3 * 64 * 128 + 2 * 64 * 128 + 64 * 32 + 3 * 128 * 128));
}

TEST_CASE("a layer that is a mixer alone keeps its own tensors and no second norm's") {
  const auto kept = [](const ModelSpec& model) {
    const Program program = program_of(model, {});
    const auto ops = unroll(program);
    const MemoryReplay memory = replay_memory(program, [](int, int) { return 0.0; });
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (ops[i].id() == "mb0.head") return memory.live_bytes[i] - memory.resident_bytes;
    return -1.0;
  };
  ModelSpec m = small();
  m.linear.layers = {}, m.ffn_layers.repeats = {false, false};
  m.layers = 2;
  const double two = kept(m);
  m.layers = 3;
  // bf16: the layer's input, its norm's output; projection, convolution, kernel's output, projection's
  // input; fp32: the norm's statistic, and each head's step.
  const double token = 2 * (2 * 64 + (2 * 128 + 2 * 64 + 8) + (128 + 2 * 64) + 128 + 128) + 4 + 4 * 8;
  CHECK(kept(m) - two == Approx(static_cast<double>(kSeq) * token));
}
