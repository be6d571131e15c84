// Model shapes: parameter counts and FLOPs of published models, what is read from YAML and from config.json, and what
// is refused.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/model.hpp"
#include "tests/fixtures/temp_directory.hpp"

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
    CHECK(m.embedding_parameters() + m.head_parameters() - m.norm_parameters() ==
          expected.integer("embedding_and_head", 1));
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
    m.router.aux_loss_weight = 0.1 / 3, m.norm_eps = 1e-6, m.tied = true;
    if (!m.attention.alibi)
      m.attention.rope_scaling = {.kind = RopeScaling::Kind::yarn,
                                  .factor = 40,
                                  .original_max_position_embeddings = 4096,
                                  .beta_fast = 24,
                                  .truncate = false,
                                  .mscale = 0.1 / 3,
                                  .mscale_all_dim = 1,
                                  .attention_factor = 1.1};
    m.attention.bias = AttentionSpec::Bias::all;
    if (m.experts > 0)
      m.router.score = RouterSpec::Score::sigmoid, m.router.scale = 2.5, m.router.groups = m.experts,
      m.router.top_groups = m.top_k, m.router.group_score = RouterSpec::GroupScore::best,
      m.router.bias_update_rate = 0.001, m.router.capacity_factor = 1.25, m.router.forced = RouterSpec::Forced::zipf,
      m.router.zipf_exponent = 0.7, m.router.normalize = false;
    const ModelSpec again = from_text(yaml_of(m));
    CHECK(yaml_of(again) == yaml_of(m));
    CHECK(again.attention.rope_scaling == m.attention.rope_scaling);
    CHECK(again.total_parameters() == m.total_parameters());
    CHECK(again.router.aux_loss_weight == (m.experts > 0 ? m.router.aux_loss_weight : 0.01));
  }
}

TEST_CASE("every family's config.json gives its own block") {
  using Parallel = AttentionSpec::Parallel;
  const ModelSpec llama = hugging_face(R"({"model_type": "llama", )" + kLlama +
                                       R"(, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}})");
  CHECK(llama.experts == 0);
  CHECK(llama.attention.rope_theta == 500000);
  CHECK_FALSE(llama.attention.rope_scaling.on());
  const ModelSpec qwen = hugging_face(
      R"({"model_type": "qwen3_moe", "head_dim": 24, "moe_intermediate_size": 32, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": true, )" +
      kLlama + "}");
  CHECK(qwen.attention.qk_norm == AttentionSpec::QkNorm::head);
  CHECK(qwen.head_dim == 24);
  CHECK(qwen.ffn == 32);
  const ModelSpec olmoe = hugging_face(
      R"({"model_type": "olmoe", "num_experts": 8, "num_experts_per_tok": 2, "clip_qkv": 5, )" + kLlama + "}");
  CHECK(olmoe.attention.qk_norm == AttentionSpec::QkNorm::full);
  CHECK(olmoe.attention.clip_qkv == 5);
  CHECK_FALSE(olmoe.router.normalize);
  const ModelSpec mpt = hugging_face(
      R"({"model_type": "mpt", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100, "no_bias": true})");
  CHECK(mpt.attention.alibi);
  CHECK(mpt.tied);
  CHECK(mpt.ffn == 256);
  CHECK(mpt.activation == Activation::gelu);
  const std::string falcon =
      R"({"model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "bias": false, )";
  CHECK(hugging_face(falcon + R"("multi_query": true, "parallel_attn": true})").attention.parallel ==
        Parallel::one_norm);
  const ModelSpec newer = hugging_face(falcon + R"("new_decoder_architecture": true, "num_kv_heads": 2})");
  CHECK(newer.attention.parallel == Parallel::two_norms);
  CHECK(newer.kv_heads == 2);
  CHECK(newer.norm_bias);
  const ModelSpec deepseek = hugging_face(
      R"({"model_type": "deepseek_v3", "kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 8,
          "n_shared_experts": 2, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, )" +
      kLlama + "}");
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
  CHECK_THAT(said(R"({"model_type": "mixtrall"})"), Contains("found 'mixtrall'") && Contains("'mixtral'?"));
  CHECK_THAT(said(R"({"model_type": "qwen2", "mlp_bias": true, )" + kLlama + "}"), Contains("mlp_bias: found true"));
  CHECK_THAT(said(R"({"model_type": "llama", "use_sliding_window": true, )" + kLlama + "}"),
             Contains("use_sliding_window: found true"));
  const std::string mixtral =
      R"({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, )" + kLlama;
  CHECK_THAT(said(mixtral + R"(, "attention_bias": true})"), Contains("attention_bias: found true"));
  CHECK_THAT(said(R"({"model_type": "llama", "vocab_size": 5})"), Contains("num_hidden_layers: found nothing"));
  CHECK_THAT(
      said(R"({"model_type": "mpt", "no_bias": false, "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 9})"),
      Contains("no_bias"));
}

TEST_CASE("errors on a config.json name its own keys") {
  const auto said = [](const std::string& json) { return error_of([&] { hugging_face(json); }); };
  CHECK_THAT(said(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
                      "num_key_value_heads": 3, "vocab_size": 100, "intermediate_size": 96})"),
             Contains("num_key_value_heads: found 3, needs a divisor of num_attention_heads = 4"));
  CHECK_THAT(said(R"({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 9, )" + kLlama + "}"),
             Contains("num_experts_per_tok: found 9, needs at most 8 (num_local_experts = 8)"));
  CHECK_THAT(said(R"({"model_type": "dbrx", "d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 9,
                      "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4},
                      "ffn_config": {"ffn_hidden_size": 0, "moe_num_experts": 4, "moe_top_k": 2}})"),
             Contains("ffn_config/ffn_hidden_size: found 0"));
}

TEST_CASE("sizes that nobody has, and values of another kind, are refused by name") {
  const auto yaml = [](const std::string& more) { return error_of([&] { from_text(kMoe + more); }); };
  CHECK_THAT(yaml("ffn_config: {ffn_hidden_size: 1000000000000000000}"),
             Contains("ffn_hidden_size: found 1000000000000000000"));
  const std::string large = R"({"model_type": "llama", "num_hidden_layers": 1000, "hidden_size": 16777216,
      "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 16777216})";
  CHECK_THAT(error_of([&] { hugging_face(large); }), Contains("parameters, needs at most 1e+16"));
  CHECK_THAT(yaml("norm_bias: \"true\"\nffn_config: {ffn_hidden_size: 32}"), Contains("needs true or false"));
  const auto llama = [](const std::string& key, const std::string& value) {
    nlohmann::json config = nlohmann::json::parse(R"({"model_type": "llama", )" + kLlama + "}");
    config[key] = nlohmann::json::parse(value);
    return error_of([&] { hugging_face(config.dump()); });
  };
  CHECK_THAT(llama("num_hidden_layers", "1000000000"),
             Contains("num_hidden_layers: found 1000000000, reads 1 to 10000"));
  CHECK_THAT(llama("hidden_size", "4611686018427387904"), Contains("hidden_size: found 4611686018427387904"));
  CHECK_THAT(llama("rms_norm_eps", "-1e-5"), Contains("found -1e-05, needs a number in 0..1"));
  CHECK_THAT(llama("rope_theta", "0"), Contains("rope_theta: found 0, needs a number >= 1"));
  CHECK_THAT(llama("tie_word_embeddings", "\"false\""),
             Contains("tie_word_embeddings: found \"false\", reads true or false"));
  CHECK_THAT(llama("hidden_act", "3"), Contains("hidden_act: found 3, reads a word"));
}

TEST_CASE("two documents are told apart by the keys that differ") {
  const nlohmann::json a{{"ffn", 104}, {"layers", 2}, {"router", {{"groups", 1}}}};
  nlohmann::json b = a;
  CHECK(differing_keys(a, b).empty());
  b["ffn"] = 96;
  b["router"]["scale"] = 2.5;
  CHECK(differing_keys(a, b) == "/ffn: found 104, needs 96; /router/scale: found nothing, needs 2.5");
}

TEST_CASE("scaled positions that are not whole, or not known to our YAML, are refused by name") {
  const auto said = [](const std::string& scaling) {
    return error_of(
        [&] { hugging_face(R"({"model_type": "llama", "rope_scaling": )" + scaling + ", " + kLlama + "}"); });
  };
  CHECK_THAT(said(R"({"type": "linear"})"), Contains("factor: found nothing, needs a number"));
  CHECK_THAT(said(R"({"type": "linear", "factor": "2"})"), Contains("factor: found \"2\", needs a number"));
  CHECK_THAT(said(R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4})"),
             Contains(" rope_scaling/original_max_position_embeddings: found nothing"));
  CHECK_THAT(said(R"({"rope_type": "llama3", "factor": 8, "original_max_position_embeddings": 8192})"),
             Contains("low_freq_factor: found nothing"));
  CHECK_THAT(said(R"({"rope_type": "yarn", "factor": 4})"), Contains("max_position_embeddings: found nothing"));
  CHECK_THAT(said(R"({"rope_type": "linear", "factor": 0.5})"), Contains("rope_scaling.factor: found 0.5"));
  CHECK_THAT(said(R"("yarn")"), Contains("rope_scaling: found \"yarn\", reads an object or null"));
  CHECK(hugging_face(R"({"model_type": "llama", "partial_rotary_factor": 0.5, )" + kLlama + "}").simulated_only ==
        std::vector<std::string>{"partial_rotary_factor"});
  CHECK(
      hugging_face(
          R"({"model_type": "llama", "max_position_embeddings": 77, "rope_scaling": {"type": "yarn", "factor": 4}, )" +
          kLlama + "}")
          .attention.rope_scaling.original_max_position_embeddings == 77);

  const auto yaml = [](const std::string& attention) {
    return error_of([&] { from_text(kMoe + "attn_config: {" + attention + "}\nffn_config: {ffn_hidden_size: 32}"); });
  };
  CHECK_THAT(yaml("rope_scaling: {rope_type: dynamic, factor: 2}"),
             Contains("rope_type: found 'dynamic', allowed default, linear, llama3, yarn"));
  CHECK_THAT(yaml("rope_scaling: {rope_type: linear}"), Contains("factor: missing"));
  CHECK_THAT(yaml("rope_scaling: {rope_type: linear, factor: 2, mscale: 1}"), Contains("mscale: unknown key"));
  CHECK_THAT(yaml("rope_scaling: {rope_type: linear, factor: 2}, alibi: true"),
             Contains("rope_scaling: found linear with alibi"));
  CHECK_THAT(yaml("attention_bias: qkv, kv_lora_rank: 8, qk_nope_head_dim: 8, qk_rope_head_dim: 4, v_head_dim: 8"),
             Contains("attention_bias: found qkv with kv_lora_rank 8"));
}

TEST_CASE("config.json, our YAML and config.json again say the same model") {
  const std::string rope = R"(, "rope_scaling": )",
                    deepseek = R"("kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
      "n_routed_experts": 8, "n_shared_experts": 2, "moe_intermediate_size": 32, "num_experts_per_tok": 2, "first_k_dense_replace": 1, )" +
                               kLlama;
  const std::string yarn =
      R"({"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 0.707})";
  const std::string qwen =
      R"("moe_intermediate_size": 96, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": true, )" + kLlama;
  for (
      const std::string& text : {
          R"("model_type": "llama", "attention_bias": true, )" + kLlama + rope +
              R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})",
          R"("model_type": "llama", )" + kLlama + rope + R"({"rope_type": "linear", "factor": 2.5})",
          R"("model_type": "qwen2", )" + kLlama,
          R"("model_type": "qwen3_moe", "attention_bias": true, )" + qwen + rope +
              R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "attention_factor": 1.25, "beta_fast": 24.0, "truncate": false})",
          R"("model_type": "deepseek_v2", "q_lora_rank": null, "topk_method": "greedy", "n_group": 1, "topk_group": 1, )" +
              deepseek + rope + yarn,
          R"("model_type": "deepseek_v2", "q_lora_rank": 24, "topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2,
              "routed_scaling_factor": 16.0, "attention_bias": true, )" +
              deepseek + rope + yarn,
          R"("model_type": "deepseek_v3", "q_lora_rank": 24, "n_group": 4, "topk_group": 2, )" + deepseek + rope + yarn,
          R"("model_type": "falcon", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "bias": false)" +
              rope + R"({"rope_type": "linear", "factor": 2.0})",
      }) {
    INFO(text);
    const nlohmann::json asked = nlohmann::json::parse("{" + text + "}");
    const ModelSpec model = hugging_face(asked.dump());
    const nlohmann::json said = config_json(model);
    for (const auto& [key, value] : asked.items())
      if (key != "num_key_value_heads") {  // DeepSeek's are its heads
        INFO(key);
        CHECK(said.value(key, nlohmann::json()) == value);
      }
    CHECK(config_json(from_text(yaml_of(model))) == said);
    CHECK(config_json(hugging_face(said.dump())) == said);
    CHECK(hugging_face(said.dump()).total_parameters() == model.total_parameters());
  }
}

TEST_CASE("biases count as parameters, and not as FLOPs") {
  const std::string without = R"({"model_type": "llama", )" + kLlama + "}",
                    with = R"({"model_type": "llama", "attention_bias": true, )" + kLlama + "}";
  const ModelSpec none = hugging_face(without), all = hugging_face(with),
                  qkv = hugging_face(R"({"model_type": "qwen2", )" + kLlama + "}");
  CHECK(all.total_parameters() - none.total_parameters() == 2 * (64 + 2 * 32 + 64));  // layers x (q, k and v, output)
  CHECK(qkv.total_parameters() - none.total_parameters() == 2 * (64 + 2 * 32));
  CHECK(all.flops_per_token(128) == none.flops_per_token(128));
}

TEST_CASE("impossible shapes name the key") {
  const auto said = [](const std::string& more) { return error_of([&] { from_text(kMoe + more); }); };
  CHECK_THAT(
      said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 3, moe_n_group: 4, moe_topk_group: 1}"),
      Contains("moe_top_k: found 3, needs at most 2"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2, moe_n_group: 3}"),
             Contains("moe_n_group: found 3"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2, first_k_dense: 2}"),
             Contains("first_k_dense: found 2"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2, first_k_dense: 1}"),
             Contains("dense_ffn_hidden_size"));
  CHECK_THAT(
      said("attn_config: {parallel_attn: true}\nffn_config: {ffn_hidden_size: 32, moe_num_experts: 8, moe_top_k: 2}"),
      Contains("parallel_attn"));
  CHECK_THAT(said("attn_config: {qk_ln: true, qk_gn: true}\nffn_config: {ffn_hidden_size: 32}"),
             Contains("qk_gn: found with qk_ln"));
  CHECK_THAT(said("norm_bias: true\nffn_config: {ffn_hidden_size: 32}"), Contains("norm_bias"));
  CHECK_THAT(said("ffn_config: {ffn_hidden_size: 32, moe_top_k: 2}"), Contains("moe_top_k"));
}
