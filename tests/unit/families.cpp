// Families of config.json: what each has that Llama has not, by its own classes in transformers, and how files differ
// from what JSON and one version of transformers allow.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "configs/base/json_reader.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/hugging_face_families.hpp"
#include "configs/files/model.hpp"
#include "tests/fixtures/usage_error.hpp"

using namespace wt;
using Catch::Contains;
using Catch::VectorContains;
using nlohmann::json;
using test::usage_error;

namespace {

const char* const kWidths =
    R"("hidden_size": 64, "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
       "vocab_size": 100, "intermediate_size": 96)";

ModelSpec read(const std::string& text) {
  return model_from_hugging_face(parse_python_json(text, "config.json"), "config.json");
}
ModelSpec family(const std::string& type, const std::string& more = "") {
  return read(fmt::format(R"({{"model_type": "{}", {}{} {}}})", type, kWidths, more.empty() ? "" : ",", more));
}
std::string refused(const std::string& type, const std::string& more = "") {
  return usage_error([&] { family(type, more); });
}
std::int64_t beyond_llama(const std::string& type, const std::string& more = "") {
  return family(type, more).total_parameters() - family("llama").total_parameters();
}
std::string yaml_of(const ModelSpec& model) {
  YAML::Emitter out;
  model_to_yaml(model, out);
  return out.c_str();
}

constexpr std::int64_t kLayers = 8, kWidth = 64, kHead = 16, kQ = 64, kKv = 32;

}  // namespace

TEST_CASE("dense families: weights that Llama's block does not have") {
  CHECK(beyond_llama("qwen3") == kLayers * 2 * kHead);                                // q_norm and k_norm
  CHECK(beyond_llama("olmo2") == kLayers * (kQ + kKv));                               // over the projections
  CHECK(beyond_llama("glm4", R"("attention_bias": false)") == kLayers * 2 * kWidth);  // norms on both sides
  CHECK(beyond_llama("seed_oss") == kLayers * (kQ + 2 * kKv));
  CHECK(beyond_llama("arcee") == -kLayers * kWidth * 96);              // no gate
  CHECK(beyond_llama("gemma", R"("head_dim": 16)") == -100 * kWidth);  // tied
  CHECK(beyond_llama("gemma3_text", R"("head_dim": 16)") == -100 * kWidth + kLayers * (2 * kWidth + 2 * kHead));
  CHECK(beyond_llama("starcoder2", R"("tie_word_embeddings": false)") ==
        kLayers * (-kWidth * 96 + kQ + 2 * kKv + kWidth + 96 + kWidth + 2 * kWidth) + kWidth);
  CHECK(beyond_llama("cohere", R"("tie_word_embeddings": false)") == -kLayers * kWidth);  // one norm
}

TEST_CASE("windows of families: which layers see everything") {
  const auto windows = [](const ModelSpec& m) {
    std::string out;
    for (std::int64_t layer = 0; layer < m.layers; ++layer) out += m.local_attention(layer) ? 'w' : '.';
    return out;
  };
  CHECK(windows(family("gemma2")) == "w.w.w.w.");
  CHECK(windows(family("gemma3_text")) == "wwwww.ww");
  CHECK(windows(family("olmo3")) == "www.www.");
  CHECK(windows(family("cohere2")) == "www.www.");
  CHECK(windows(family("exaone4", R"("sliding_window_pattern": "LLG")")) == "ww.ww.ww");
  CHECK(windows(family("exaone4", R"("sliding_window": null, "sliding_window_pattern": null)")) == "........");
  CHECK(windows(family("mistral", R"("sliding_window": 512)")) == "wwwwwwww");
  CHECK(windows(family("phi3")) == "........");
}

TEST_CASE("families with all parts of the trainer are trained, the others name what it lacks") {
  for (const char* type : {"qwen3", "seed_oss", "phi3", "internlm2", "llama", "mistral", "qwen2", "starcoder2"}) {
    INFO(type);
    CHECK(family(type).untrainable().empty());
  }
  CHECK_THAT(family("gemma2").untrainable(), VectorContains(std::string("norm_placement")));
  CHECK_THAT(family("smollm3").untrainable(), VectorContains(std::string("no_rope_layers")));
  CHECK_THAT(family("granite", R"("logits_scaling": 8.0)").untrainable(),
             VectorContains(std::string("logits_scaling")));
  CHECK(family("granite").untrainable().empty());
}

TEST_CASE("keys of experts by the names of every family") {
  const std::string names[] = {
      R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1)",
      R"("num_experts": 8, "num_experts_per_token": 2, "moe_intermediate_size": 32, "num_shared_experts": 1)",
      R"("num_experts": 8, "moe_topk": [2, 2], "moe_intermediate_size": [32, 32], "num_shared_expert": [1, 1])",
      R"("moe_num_experts": 8, "moe_k": 2, "moe_intermediate_size": 32, "moe_num_shared_experts": 1)"};
  for (const std::string& keys : names)
    for (const char* type : {"dots1", "solar_open", "bailing_moe", "hunyuan_v1_moe"}) {
      INFO(type << keys);
      const ModelSpec m = family(type, keys);
      CHECK((m.experts == 8 && m.top_k == 2 && m.ffn == 32 && m.shared_ffn == 32));
    }
  CHECK_THAT(refused("hunyuan_v1_moe", R"("num_experts": 8, "moe_topk": [2, 4], "moe_intermediate_size": 32)"),
             Contains("moe_topk: found [2,4], reads a whole number, or a list"));
  const ModelSpec first = family("dots1", names[0] + R"(, "first_k_dense_replace": 1)");
  CHECK((!first.moe(0) && first.moe(1) && first.ffn_width(0) == 96));
  const ModelSpec listed =
      family("exaone_moe", names[0] + R"(, "mlp_layer_types": ["dense", "dense", "sparse", "sparse", "sparse", "dense",
                                                               "sparse", "sparse"])");
  CHECK((!listed.moe(1) && listed.moe(2) && !listed.moe(5) && listed.moe(7)));
}

TEST_CASE("sparse attention counts an indexer, and attention to the chosen keys") {
  const std::string latent =
      R"("kv_lora_rank": 16, "q_lora_rank": 24, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
         "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  const std::string index = R"(, "index_topk": 32, "index_n_heads": 2, "index_head_dim": 8)";
  const ModelSpec dense = family("deepseek_v3", latent), sparse = family("deepseek_v32", latent + index);
  const std::int64_t projections = 24 * 2 * 8 + kWidth * (8 + 2);
  CHECK(sparse.total_parameters() - dense.total_parameters() == kLayers * (projections + 2 * 8));
  CHECK(sparse.mean_keys(0, 32) == 16);
  CHECK(sparse.mean_keys(0, 128) == 32 - 32.0 * 32 / 256);
  const double heads = 4 * (12 + 8), scores = 2 * 8;
  CHECK(sparse.flops_per_token(128) - dense.flops_per_token(128) ==
        Approx(6 * kLayers * (projections + heads * (28 - 64) + scores * 64)));
  CHECK_FALSE(sparse.approximations.empty());
  CHECK_THAT(sparse.untrainable(), VectorContains(std::string("index_topk")));
}

TEST_CASE("linear mixers count the weights of their classes") {
  const auto layer = [](const std::string& type, const std::string& more) {
    const ModelSpec m = family(type, more);
    REQUIRE(m.linear_mixer(0));
    return m.mixer_projections(0) + m.linear.other_parameters();
  };
  const std::string types = R"("layer_types": ["linear_attention", "full_attention", "linear_attention",
      "full_attention", "linear_attention", "full_attention", "linear_attention", "full_attention"])";
  // MiniMaxLightningAttention: qkv, output_gate, out_proj, norm
  CHECK(layer("minimax", R"("num_local_experts": 4, "num_experts_per_tok": 2, )" + types) ==
        kWidth * 3 * kQ + kWidth * kQ + kQ * kWidth + kQ);
  // Lfm2ShortConv: in_proj, conv, out_proj
  CHECK(layer("lfm2", R"("block_auto_adjust_ff_dim": false, "full_attn_idxs": [2])") ==
        3 * kWidth * kWidth + 3 * kWidth + kWidth * kWidth);
  // KimiLinearDeltaAttention: q, k, v, conv, f_a, f_b, A_log, dt_bias, b, g_a, g_b, o_norm, o
  const std::int64_t d = 8, h = 4, w = d * h;
  CHECK(layer("kimi_linear",
              R"("kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "num_experts": 4,
                 "num_experts_per_token": 2, "moe_intermediate_size": 32,
                 "linear_attn_config": {"full_attn_layers": [4, 8], "num_heads": 4, "head_dim": 8,
                                        "short_conv_kernel_size": 4})") ==
        3 * kWidth * w + 3 * w * 4 + kWidth * d + d * w + h + w + kWidth * h + kWidth * d + d * w + d + w * kWidth);
}

TEST_CASE("a text part is read alone, with what it takes from the whole") {
  const ModelSpec vision = read(fmt::format(
      R"({{"model_type": "qwen3_vl", "tie_word_embeddings": true, "vision_config": {{"depth": 27}},
          "text_config": {{"model_type": "qwen3_vl_text", {}}}}})",
      kWidths));
  CHECK(vision.tied);
  CHECK(vision.attention.qk_norm == AttentionSpec::QkNorm::head);
  CHECK(vision.approximations == std::vector<std::string>{"the text part alone, without vision_config"});
  const ModelSpec gemma = read(
      R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
          "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}})");  // gemma-3-4b-it's own keys
  CHECK(gemma.total_parameters() == 3880263168);
  const ModelSpec wrapped =
      read(fmt::format(R"({{"model_type": "some_vlm", "llm_config": {{"model_type": "qwen2", {}}}}})", kWidths));
  CHECK(wrapped.attention.bias == AttentionSpec::Bias::qkv);
  CHECK_THAT(usage_error([] { read(R"({"model_type": "some_vlm", "text_config": {"model_type": "qwen9"}})"); }),
             Contains("text_config/model_type: found 'qwen9'") && Contains("did you mean"));
}

TEST_CASE("numbers that Python writes and JSON lacks are read, but not as numbers of a model") {
  const ModelSpec m =
      family("llama", R"("time_step_limit": [0.0, Infinity], "note": "NaN \" Infinity", "x": -Infinity)");
  CHECK(m.layers == 8);
  CHECK_THAT(refused("llama", R"("rms_norm_eps": NaN)"), Contains("rms_norm_eps: found \"NaN\", needs a number"));
  CHECK_THAT(refused("llama", R"("head_dim": Infinity)"), Contains("head_dim: found \"Infinity\""));
}

TEST_CASE("rotary scaling: equal factors, kinds without a formula here, maps by layer type") {
  const auto rope = [](const std::string& keys) { return family("llama", R"("rope_scaling": {)" + keys + "}"); };
  const ModelSpec equal = rope(R"("rope_type": "llama3", "factor": 16.0, "high_freq_factor": 1.0,
      "low_freq_factor": 1.0, "original_max_position_embeddings": 64)");
  const std::vector<double> all = rope_frequencies(equal.attention.rope_scaling, 10000, 16);
  CHECK(all[0] == 1);                                       // 10 rotations in 64 tokens
  CHECK(all[7] == Approx(std::pow(10000, -7.0 / 8) / 16));  // 0.003: divided
  CHECK(rope(R"("type": "mrope", "mrope_section": [16, 24, 24])").untrainable().empty());
  for (const char* kind : {"dynamic", "longrope", "su"})
    CHECK(rope(fmt::format(R"("type": "{}", "factor": 2.0)", kind)).untrainable() ==
          std::vector<std::string>{fmt::format("rope_scaling {}", kind)});
  CHECK(rope(R"("type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "attn_factor": 2)")
            .untrainable() == std::vector<std::string>{"rope_scaling.attn_factor"});
  const ModelSpec layers = family("gemma3_text", R"("rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2e6},
      "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}})");
  CHECK(layers.attention.rope_theta == 2e6);
  CHECK(layers.attention.rope_scaling.factor == 8);
}

TEST_CASE("stored formats and other keys of the Hub change nothing") {
  const ModelSpec plain = family("llama");
  const ModelSpec stored = family("llama", R"("dtype": "bfloat16", "torch_dtype": "float16", "auto_map": {"x": "y"},
      "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]})");
  CHECK(stored.total_parameters() == plain.total_parameters());
  CHECK(stored.approximations.size() == 1);
  CHECK_THAT(stored.approximations[0], Contains("quantization_config") && Contains("the run's precision"));
}

TEST_CASE("an unread family is refused with its reason and the page") {
  CHECK_THAT(refused("gemma3n_text"), Contains("embeddings of every layer") && Contains("docs/models.md"));
  CHECK_THAT(refused("jamba"), Contains("found 'jamba' (Mamba-1)"));
  CHECK_THAT(refused("qwen33"), Contains("did you mean 'qwen3'?"));
}

TEST_CASE("our YAML gives every new key back") {
  for (const char* text :
       {R"("model_type": "deepseek_v4", "head_dim": 32, "q_lora_rank": 24, "o_lora_rank": 8, "o_groups": 2,
           "index_topk": 16, "index_n_heads": 8, "index_head_dim": 8, "sliding_window": 4, "n_routed_experts": 8,
           "num_experts_per_tok": 2, "moe_intermediate_size": 32)",
        R"("model_type": "afmoe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32)",
        R"("model_type": "olmo2")", R"("model_type": "lfm2", "full_attn_idxs": [2])"}) {
    INFO(text);
    const ModelSpec model = read(fmt::format("{{{}, {}}}", text, kWidths));
    YamlMap map = YamlMap::from_text(yaml_of(model), "model.yaml");
    const ModelSpec again = model_from_yaml(map);
    map.finish();
    CHECK(yaml_of(again) == yaml_of(model));
    CHECK(again.total_parameters() == model.total_parameters());
    CHECK(again.approximations == model.approximations);
  }
}

TEST_CASE("docs/models.md lists the families that are read") {
  std::ifstream file("docs/models.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const auto& [type, reader] : hugging_face_families()) {
    INFO(type);
    CHECK(page.str().find("`" + type + "`") != std::string::npos);
  }
}
