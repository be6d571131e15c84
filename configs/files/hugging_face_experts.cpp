// Families with routed experts and attention of heads.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/files/hugging_face_families.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Config = HuggingFaceConfig;
using QkNorm = AttentionSpec::QkNorm;
using Bias = AttentionSpec::Bias;

void read_dbrx(const Config& c, ModelSpec& m) {
  const Config attention = c.map("attn_config"), ffn = c.map("ffn_config");
  m.layers = c.layers("n_layers");
  m.d_model = c.integer("d_model");
  m.heads = c.integer("n_heads");
  m.kv_heads = attention.integer("kv_n_heads");
  m.head_dim = m.heads > 0 ? m.d_model / m.heads : 0;
  read_rope(attention, m);
  attention.must_be("rope_scaling", !m.attention.rope_scaling.on(), "null");
  m.attention.clip_qkv = attention.number_or("clip_qkv", 0);
  m.norm = Norm::layernorm;
  m.ffn = ffn.integer("ffn_hidden_size");
  m.experts = ffn.integer("moe_num_experts");
  m.top_k = ffn.integer("moe_top_k");
  m.router.normalize = !ffn.object.contains("moe_normalize_expert_weights") || ffn.has("moe_normalize_expert_weights");
  if (m.router.normalize)
    ffn.must_be("moe_normalize_expert_weights", ffn.number_or("moe_normalize_expert_weights", 1) == 1, "1 or null");
  m.router.aux_loss_weight = ffn.number_or("moe_loss_weight", m.router.aux_loss_weight);
}

void read_mixtral(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 1e6;
  read_llama_like(c, m);
  c.must_be("attention_bias", !c.flag("attention_bias", false), "false");
  m.attention.window = c.integer_or("sliding_window", 0);
  m.ffn = c.integer("intermediate_size");
  m.experts = c.integer("num_local_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", m.router.aux_loss_weight);
}

void read_softmax_router(const Config& c, ModelSpec& m) {
  m.experts = c.integer("num_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.router.normalize = c.flag("norm_topk_prob", false);
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", m.router.aux_loss_weight);
}

}  // namespace

void read_qwen_moe(const HuggingFaceConfig& c, ModelSpec& m, const FamilyDefaults& family) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m, family);
  m.ffn = c.integer("moe_intermediate_size");
  read_softmax_router(c, m);
  read_sparse_step(c, "decoder_sparse_step", "mlp_only_layers", m);
  m.dense_ffn = m.moe_pattern.repeats.empty() ? 0 : c.integer("intermediate_size");
}

namespace {

void read_olmoe(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.attention.qk_norm = AttentionSpec::QkNorm::full;
  m.attention.clip_qkv = c.number_or("clip_qkv", 0);
  m.ffn = c.integer("intermediate_size");
  read_softmax_router(c, m);
}

void read_qwen3_moe(const Config& c, ModelSpec& m) {
  read_qwen_moe(c, m);
  read_attention_bias(c, m.attention);
  read_qwen_window(c, false, m);
  m.attention.qk_norm = AttentionSpec::QkNorm::head;
}

void read_qwen2_moe(const Config& c, ModelSpec& m) {
  read_qwen_moe(c, m);
  read_qwen_window(c, true, m);
  m.attention.bias = AttentionSpec::Bias::qkv;
  m.shared_ffn = c.integer("shared_expert_intermediate_size");
  simulate_only(m, "shared_expert_gate");  // a sigmoid of one product with width 1
}

void read_gpt_oss(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 150000;
  read_llama_like(c, m);
  c.must_be("attention_bias", c.flag("attention_bias", true), "true");
  m.attention.bias = AttentionSpec::Bias::all;
  m.attention.sinks = true;
  m.ffn_bias = true;
  m.attention.window = c.integer_or("sliding_window", 128);
  m.attention.local.repeats = {true, false};
  read_layer_types(c, "sliding_attention", m);
  m.ffn = c.integer("intermediate_size");
  m.experts = c.integer("num_local_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", 0.9);
  c.must_be("swiglu_limit", c.number_or("swiglu_limit", 7) == 7, "7");
  m.activation = Activation::clamped_swiglu;
}

void read_llama4(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 500000;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.ffn = m.shared_ffn = c.integer("intermediate_size");
  m.experts = c.integer_or("num_local_experts", 16);
  m.top_k = c.integer_or("num_experts_per_tok", 1);
  if (c.has("moe_layers")) {
    std::vector<bool> layers(static_cast<std::size_t>(std::max<std::int64_t>(0, m.layers)), false);
    for (const json& layer : c.object["moe_layers"]) {
      c.must_be("moe_layers", layer.is_number_integer() && layer >= 0 && layer < m.layers, "numbers of layers",
                layer.dump());
      layers[layer.get<std::size_t>()] = true;
    }
    m.moe_pattern = LayerPattern::of(std::move(layers));
  } else {
    read_sparse_step(c, "interleave_moe_layer_step", nullptr, m);
  }
  m.dense_ffn = m.moe_pattern.repeats.empty() ? 0 : c.integer("intermediate_size_mlp");
  m.router.score = RouterSpec::Score::sigmoid;
  m.router.normalize = false;
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", 0.001);
  m.attention.chunk = c.integer_or("attention_chunk_size", 8192);
  std::vector<bool> layers;  // layers with rotary positions attend in chunks
  if (c.has("no_rope_layers") && !c.object["no_rope_layers"].empty())
    for (const json& layer : c.object["no_rope_layers"]) layers.push_back(layer != 0);
  else
    for (std::int64_t every = c.integer_or("no_rope_layer_interval", 4), i = 1; i <= every; ++i)
      layers.push_back(i < every);
  if (m.attention.chunk > 0) m.attention.local = LayerPattern::of(std::move(layers));
  read_layer_types(c, "chunked_attention", m);
  for (const char* feature :
       {"attn_temperature_tuning", "no_rope_layers", "rope_interleaved", "scores_on_expert_input"})
    simulate_only(m, feature);
  if (c.flag("use_qk_norm", true)) simulate_only(m, "qk_l2norm");  // it has no weights
}

void read_glm4_moe(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.rotary = 0.5});
  m.attention.bias = c.flag("attention_bias", false) ? AttentionSpec::Bias::qkv : AttentionSpec::Bias::none;
  if (c.flag("use_qk_norm", false)) m.attention.qk_norm = AttentionSpec::QkNorm::head;
  m.ffn = c.integer("moe_intermediate_size");
  m.experts = c.integer("n_routed_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.dense_layers = c.integer_or("first_k_dense_replace", 1);
  m.dense_ffn = m.dense_layers > 0 ? c.integer("intermediate_size") : 0;
  m.shared_ffn = c.integer_or("n_shared_experts", 1) * m.ffn;
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
  read_sigmoid_router(c, m.router);
}

/// Two experts by sparsemixer, LayerNorm, and biases everywhere but in the experts.
void read_phimoe(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 1e6;
  read_llama_like(c, m);
  m.norm = Norm::layernorm, m.norm_bias = true;
  read_attention_bias(c, m.attention);
  read_experts(c, m);
  m.attention.window = c.integer_or("sliding_window", 0);
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", 0.001);
  simulate_only(m, "sparsemixer");
  if (c.flag("lm_head_bias", false)) simulate_only(m, "lm_head bias");
}

/// FlexOlmo: OLMoE's experts with OLMo-2's norms.
void read_flex_olmo(const Config& c, ModelSpec& m) {
  read_olmoe(c, m);
  m.norm_placement = NormPlacement::after;
}

/// Scores of the chosen experts are normalized among themselves.
void read_granitemoe(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  read_experts(c, m);
  m.shared_ffn = c.integer_or("shared_intermediate_size", 0);
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", 0.001);
}

void read_ernie_moe(const Config& c, ModelSpec& m) {
  m.tied = true, m.attention.rope_theta = 500000;
  read_llama_like(c, m);
  simulate_only(m, "rope_interleaved");
  c.must_be("use_bias", !c.flag("use_bias", false), "false");
  read_experts(c, m);
  read_dense_layers(c, 1, m);
  const std::int64_t last = c.any_or({"moe_layer_end_index"}, -1), every = c.integer_or("moe_layer_interval", 1);
  c.must_be("moe_layer_end_index", last == -1 || last == m.layers - 1, "the last layer, or -1");
  c.must_be("moe_layer_interval", every == 1, "1");
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", 0.001);
  m.router.bias_update_rate = 0.001;
}

/// DeepSeek-V3's experts behind attention of heads; `usual` first layers without experts.
void read_sigmoid_experts(const Config& c, std::int64_t usual, ModelSpec& m) {
  read_attention_bias(c, m.attention);
  read_experts(c, m);
  read_dense_layers(c, usual, m);
  read_sigmoid_router(c, m.router);
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
}

void read_dots1(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  m.attention.qk_norm = QkNorm::head;
  read_sigmoid_experts(c, 0, m);
  m.router.normalize = c.flag("norm_topk_prob", false);
  const std::int64_t first = c.integer_or("max_window_layers", m.layers);
  c.must_be("max_window_layers", first >= m.layers || !c.has("sliding_window"), "num_hidden_layers: no windows");
}

void read_solar_open(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 1e6;
  read_llama_like(c, m);
  read_sigmoid_experts(c, 0, m);
}

void read_exaone_moe(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  m.attention.qk_norm = QkNorm::head;
  read_alternating_windows(c, 4096, 4, m);
  if (m.attention.any_local()) simulate_only(m, "no_rope_layers");
  read_sigmoid_experts(c, 1, m);
}

void read_hy_v3(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 11158840;
  read_llama_like(c, m);
  m.attention.qk_norm = QkNorm::head;
  read_sigmoid_experts(c, 1, m);
  m.router.scale = c.number_or("router_scaling_factor", 2.826);
}

/// Gated attention, norms on both sides, windows in three layers of four, the others without positions.
void read_afmoe(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  m.norm_placement = NormPlacement::both;
  m.attention.qk_norm = QkNorm::head, m.attention.output_gate = true;
  read_alternating_windows(c, 1024, 4, m);
  simulate_only(m, "no_rope_layers");
  if (c.flag("mup_enabled", false)) simulate_only(m, "mup_enabled");
  read_sigmoid_experts(c, 1, m);
  m.router.normalize = c.flag("route_norm", true);
  m.router.scale = c.number_or("route_scale", 1);
}

/// The first version of DeepSeek's experts, before latent attention.
void read_deepseek_moe(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  read_experts(c, m);
  read_dense_layers(c, 0, m);
  m.router.normalize = c.flag("norm_topk_prob", false);
  m.router.aux_loss_weight = c.number_or("aux_loss_alpha", 0.001);
}

/// Ling and Ring. The second version has DeepSeek-V3's router, norms of q and k, and half of a head rotated.
void read_bailing(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m, {.rotary = c.text("model_type", "") == "bailing_moe_v2" ? 0.5 : 1});
  if (c.flag("use_bias", false)) m.attention.bias = Bias::all;
  if (c.flag("use_qkv_bias", false) && m.attention.bias == Bias::none) m.attention.bias = Bias::qkv;
  if (c.flag("use_qk_norm", false)) m.attention.qk_norm = QkNorm::head;
  read_experts(c, m);
  read_dense_layers(c, 0, m);
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
  if (c.text("score_function", "softmax") == "sigmoid") return read_sigmoid_router(c, m.router);
  m.router.normalize = c.flag("norm_topk_prob", false);
}

void read_hunyuan_moe(const Config& c, ModelSpec& m) {
  c.must_be("use_cla", !c.flag("use_cla", false), "false: keys and values shared between layers are not modelled");
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  if (c.flag("use_qk_norm", true)) m.attention.qk_norm = QkNorm::head, simulate_only(m, "qk_norm after rope");
  read_experts(c, m);
  // transformers has one shared expert whatever the file says.
  if (m.shared_ffn == 0) m.shared_ffn = c.any({"intermediate_size"});
  m.router.normalize = c.flag("norm_topk_prob", true);
}

/// Norm over whole projections, and DeepSeek-V3's router without groups. The modules that predict further tokens are
/// not in the published weights.
void read_minimax_m2(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6, m.attention.rope_theta = 5e6;
  read_llama_like(c, m);
  if (c.flag("use_qk_norm", true)) m.attention.qk_norm = QkNorm::full;
  read_experts(c, m);
  m.shared_ffn = c.integer_or("shared_intermediate_size", 0);
  read_sigmoid_router(c, m.router);
}

}  // namespace

const Families& expert_families() {
  static const Families kFamilies{{"afmoe", read_afmoe},
                                  {"bailing_moe", read_bailing},
                                  {"bailing_moe_v2", read_bailing},
                                  {"dbrx", read_dbrx},
                                  {"deepseek", read_deepseek_moe},
                                  {"dots1", read_dots1},
                                  {"ernie4_5_moe", read_ernie_moe},
                                  {"exaone_moe", read_exaone_moe},
                                  {"flex_olmo", read_flex_olmo},
                                  {"glm4_moe", read_glm4_moe},
                                  {"glm4v_moe_text", read_glm4_moe},
                                  {"gpt_oss", read_gpt_oss},
                                  {"granitemoe", read_granitemoe},
                                  {"granitemoeshared", read_granitemoe},
                                  {"hunyuan", read_hunyuan_moe},
                                  {"hunyuan_v1_moe", read_hunyuan_moe},
                                  {"hy_v3", read_hy_v3},
                                  {"llama4", read_llama4},
                                  {"llama4_text", read_llama4},
                                  {"minimax_m2", read_minimax_m2},
                                  {"mixtral", read_mixtral},
                                  {"olmoe", read_olmoe},
                                  {"phimoe", read_phimoe},
                                  {"qwen2_moe", read_qwen2_moe},
                                  {"qwen3_moe", read_qwen3_moe},
                                  {"qwen3_omni_moe_text", read_qwen3_moe},
                                  {"qwen3_vl_moe_text", read_qwen3_moe},
                                  {"solar_open", read_solar_open}};
  return kFamilies;
}

}  // namespace wt
