// Model shapes: parameter counts and FLOPs of published models, what is read from YAML and from config.json, and what is
// refused.
#include <catch2/catch.hpp>

#include "configs/spec/error.hpp"
#include "configs/spec/model.hpp"
#include "configs/spec/yaml.hpp"
#include "tests/support/temp_directory.hpp"

using namespace wt;
using Catch::Contains;

namespace {

std::string yaml_of(const ModelSpec& model) {
  YAML::Emitter out;
  model_to_yaml(model, out);
  return out.c_str();
}

ModelSpec from_text(const std::string& text) {
  YamlMap map = YamlMap::from_text(text, "model.yaml");
  ModelSpec model = model_from_yaml(map);
  map.finish();
  return model;
}

ModelSpec hugging_face(const std::string& json) {
  const test::TempDirectory folder;
  test::write_bytes(folder / "config.json", json);
  return read_model(folder.path().string());
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    CHECK(e.code() == Code::usage);
    return e.what();
  }
  return "no error";
}

const std::string kLlama =
    R"("hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 100, "intermediate_size": 96)";
const std::string kMoe = "name: m\nn_layers: 2\nd_model: 64\nn_heads: 4\nvocab_size: 100\n";

}  // namespace

TEST_CASE("parameters and FLOPs of published models are those counted by hand") {
  YamlMap file = YamlMap::from_file("tests/validation/model_shapes/shapes.yaml");
  int count = 0;
  for (YamlMap& map : file.maps("models")) {
    YamlMap expected = map.map("expected");
    const ModelSpec m = model_from_yaml(map);
    INFO(m.name);
    const std::int64_t norms = expected.integer("norms", 1);
    CHECK(m.total_parameters() == expected.integer("total", 1) + norms);
    CHECK(m.active_parameters() == expected.integer("active", 1) + norms);
    CHECK(m.attention_parameters() == expected.integer("attention_per_layer", 1));
    CHECK(m.embedding_parameters() + m.head_parameters() - m.norm_parameters() == expected.integer("embedding_and_head", 1));
    const std::int64_t expert = expected.integer("each_expert", 0);
    CHECK((m.experts > 0 ? m.expert_parameters() : 0) == expert);
    const double matmul = static_cast<double>(expected.integer("matmul", 1));
    CHECK(m.flops_per_token(0) == 6.0 * matmul);
    const double heads = static_cast<double>(m.layers * m.heads * (m.head_dim + m.v_head_dim()));
    CHECK(m.flops_per_token(4096) - m.flops_per_token(0) == Approx(3 * heads * 4096));
    ++count;
  }
  CHECK(count == 15);
}

TEST_CASE("a model written as YAML reads back to the same model") {
  YamlMap file = YamlMap::from_file("tests/validation/model_shapes/shapes.yaml");
  for (YamlMap& map : file.maps("models")) {
    map.node("expected");
    ModelSpec m = model_from_yaml(map);
    m.attention.clip_qkv = m.attention.mla.on() ? 0 : 7.5;
    m.router.aux_loss_weight = 0.1 / 3, m.norm_eps = 1e-6, m.tied = true, m.attention.rope_scaling = "yarn";
    if (m.experts > 0)
      m.router.score = RouterSpec::Score::sigmoid, m.router.scale = 2.5, m.router.groups = m.experts, m.router.top_groups = m.top_k,
      m.router.bias_update_rate = 0.001, m.router.capacity_factor = 1.25, m.router.forced = RouterSpec::Forced::zipf,
      m.router.zipf_exponent = 0.7, m.router.normalize = false;
    const ModelSpec again = from_text(yaml_of(m));
    CHECK(yaml_of(again) == yaml_of(m));
    CHECK(again.total_parameters() == m.total_parameters());
    CHECK(again.router.aux_loss_weight == (m.experts > 0 ? m.router.aux_loss_weight : 0.01));
  }
}

TEST_CASE("every family's config.json gives its own block") {
  using Parallel = AttentionSpec::Parallel;
  const ModelSpec llama = hugging_face(R"({"model_type": "llama", )" + kLlama + R"(, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})");
  CHECK(llama.experts == 0);
  CHECK(llama.attention.rope_theta == 500000);
  CHECK(llama.attention.rope_scaling == "");
  const ModelSpec qwen = hugging_face(R"({"model_type": "qwen3_moe", "head_dim": 24, "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": true, )" + kLlama + "}");
  CHECK(qwen.attention.qk_norm == AttentionSpec::QkNorm::head);
  CHECK(qwen.head_dim == 24);
  CHECK(qwen.ffn == 32);
  const ModelSpec olmoe = hugging_face(R"({"model_type": "olmoe", "num_experts": 8, "num_experts_per_tok": 2, "clip_qkv": 5, )" + kLlama + "}");
  CHECK(olmoe.attention.qk_norm == AttentionSpec::QkNorm::full);
  CHECK(olmoe.attention.clip_qkv == 5);
  CHECK_FALSE(olmoe.router.normalize);
  const ModelSpec mpt = hugging_face(R"({"model_type": "mpt", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100, "no_bias": true})");
  CHECK(mpt.attention.alibi);
  CHECK(mpt.tied);
  CHECK(mpt.ffn == 256);
  CHECK(mpt.activation == Activation::gelu);
  const std::string falcon = R"({"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "bias": false, )";
  CHECK(hugging_face(falcon + R"("multi_query": true, "parallel_attn": true})").attention.parallel == Parallel::one_norm);
  const ModelSpec newer = hugging_face(falcon + R"("new_decoder_architecture": true, "num_kv_heads": 2})");
  CHECK(newer.attention.parallel == Parallel::two_norms);
  CHECK(newer.kv_heads == 2);
  CHECK(newer.norm_bias);
  const ModelSpec deepseek = hugging_face(
      R"({"model_type": "deepseek_v3", "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 8,
          "n_shared_experts": 2, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, )" + kLlama + "}");
  CHECK(deepseek.router.score == RouterSpec::Score::sigmoid);
  CHECK(deepseek.router.groups == 4);
  CHECK(deepseek.router.scale == 2.5);
  CHECK(deepseek.shared_ffn == 64);
  CHECK_FALSE(deepseek.moe(0));
  CHECK(deepseek.ffn_width(0) == 96);
  CHECK(deepseek.ffn_width(1) == 64);
}

TEST_CASE("what a config.json asks for beyond the model is refused by name") {
  const auto said = [](const std::string& json) { return error_of([&] { hugging_face(json); }); };
  CHECK_THAT(said(R"({"model_type": "gpt2"})"), Contains("found 'gpt2'") && Contains("mixtral"));
  CHECK_THAT(said(R"({"model_type": "llama", "attention_bias": true, )" + kLlama + "}"), Contains("attention_bias: found true"));
  CHECK_THAT(said(R"({"model_type": "llama", "vocab_size": 5})"), Contains("num_hidden_layers: found nothing"));
  CHECK_THAT(said(R"({"model_type": "mpt", "no_bias": false, "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 9})"), Contains("no_bias"));
  CHECK(hugging_face(R"({"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8}, )" + kLlama + "}").attention.rope_scaling == "llama3");
}

TEST_CASE("impossible shapes name the key") {
  const auto said = [](const std::string& more) { return error_of([&] { from_text(kMoe + more); }); };
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 3, moe_n_group: 4, moe_topk_group: 1}"),
             Contains("moe_top_k: found 3, needs at most 2"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2, moe_n_group: 3}"), Contains("moe_n_group: found 3"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2, first_k_dense: 2}"), Contains("first_k_dense: found 2"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2, first_k_dense: 1}"), Contains("dense_ffn_hidden_size"));
  CHECK_THAT(said("attn_config: {parallel_attn: true}\nffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2}"), Contains("parallel_attn"));
  CHECK_THAT(said("attn_config: {qk_ln: true, qk_gn: true}\nffn_config: {ffn_hidden_size: 32}"), Contains("qk_gn: found with qk_ln"));
  CHECK_THAT(said("norm_bias: true\nffn_config: {ffn_hidden_size: 32}"), Contains("norm_bias"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_top_k: 2}"), Contains("moe_top_k"));
}
