// Reads a model from a Hugging Face config.json. A key for which the family has only one value is not checked; a value
// that our model cannot express is an error that names it.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>

#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/files/hugging_face_config.hpp"
#include "configs/files/model.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Config = HuggingFaceConfig;

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

void read_olmoe(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.attention.qk_norm = AttentionSpec::QkNorm::full;
  m.attention.clip_qkv = c.number_or("clip_qkv", 0);
  m.ffn = c.integer("intermediate_size");
  read_softmax_router(c, m);
}

void read_qwen_moe(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  m.ffn = c.integer("moe_intermediate_size");
  read_softmax_router(c, m);
  read_sparse_step(c, "decoder_sparse_step", "mlp_only_layers", m);
  m.dense_ffn = m.moe_pattern.repeats.empty() ? 0 : c.integer("intermediate_size");
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
  m.simulated_only.push_back("shared_expert_gate");  // a sigmoid of one product with width 1
}

void read_qwen3_next(const Config& c, ModelSpec& m) {
  read_qwen_moe(c, m);
  read_attention_bias(c, m.attention);
  m.attention.qk_norm = AttentionSpec::QkNorm::head;
  m.attention.output_gate = true;
  m.shared_ffn = c.integer("shared_expert_intermediate_size");
  if (m.simulated_only.empty()) m.simulated_only = {"partial_rotary_factor"};  // the family's default is 0.25
  m.simulated_only.emplace_back("shared_expert_gate");
  LinearMixerSpec& l = m.linear;
  l.kind = LinearMixerSpec::Kind::gated_delta_net;
  l.key_heads = c.integer("linear_num_key_heads");
  l.value_heads = c.integer("linear_num_value_heads");
  l.key_head_dim = c.integer("linear_key_head_dim");
  l.value_head_dim = c.integer("linear_value_head_dim");
  l.conv_kernel = c.integer_or("linear_conv_kernel_dim", 4);
  l.chunk = 64;  // as in transformers' torch_chunk_gated_delta_rule and flash-linear-attention's kernels
  std::vector<bool> layers;
  if (c.has("layer_types")) {
    for (const json& type : c.object["layer_types"]) {
      c.must_be("layer_types", type == "linear_attention" || type == "full_attention",
                "linear_attention, full_attention", type.dump());
      layers.push_back(type == "linear_attention");
    }
    c.must_be("layer_types", static_cast<std::int64_t>(layers.size()) == m.layers, "a word for each layer");
  } else {
    const std::int64_t every = c.integer_or("full_attention_interval", 4);
    c.must_be("full_attention_interval", every >= 1, "a whole number >= 1");
    for (std::int64_t layer = 1; layer <= every; ++layer) layers.push_back(layer < every);
  }
  l.set_layers(std::move(layers));
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

/// The text model; a file of the multimodal model has it in "text_config".
void read_llama4(const Config& whole, ModelSpec& m) {
  const Config c = whole.has("text_config") ? whole.map("text_config") : whole;
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
    m.simulated_only.push_back(feature);
  if (c.flag("use_qk_norm", true)) m.simulated_only.push_back("qk_l2norm");  // it has no weights
}

void read_glm4_moe(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  m.attention.bias = c.flag("attention_bias", false) ? AttentionSpec::Bias::qkv : AttentionSpec::Bias::none;
  if (c.flag("use_qk_norm", false)) m.attention.qk_norm = AttentionSpec::QkNorm::head;
  if (!c.has("partial_rotary_factor") && m.simulated_only.empty()) m.simulated_only = {"partial_rotary_factor"};  // 0.5
  m.ffn = c.integer("moe_intermediate_size");
  m.experts = c.integer("n_routed_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.dense_layers = c.integer_or("first_k_dense_replace", 1);
  m.dense_ffn = m.dense_layers > 0 ? c.integer("intermediate_size") : 0;
  m.shared_ffn = c.integer_or("n_shared_experts", 1) * m.ffn;
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
  read_sigmoid_router(c, m.router);
}

void read_deepseek(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  MlaSpec& a = m.attention.mla;
  a.kv_lora_rank = c.integer("kv_lora_rank");
  a.q_lora_rank = c.integer_or("q_lora_rank", 0);
  a.qk_nope_head_dim = c.integer("qk_nope_head_dim");
  a.qk_rope_head_dim = c.integer("qk_rope_head_dim");
  a.v_head_dim = c.integer("v_head_dim");
  m.kv_heads = m.heads;
  m.head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  m.ffn = c.integer("moe_intermediate_size");
  m.experts = c.integer("n_routed_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.dense_layers = c.integer_or("first_k_dense_replace", 0);
  m.dense_ffn = m.dense_layers > 0 ? c.integer("intermediate_size") : 0;
  m.shared_ffn = c.integer_or("n_shared_experts", 0) * m.ffn;
  const std::int64_t every = c.integer_or("moe_layer_freq", 1);
  c.must_be("moe_layer_freq", every >= 1, "a whole number >= 1");
  if (every > 1) {
    m.moe_pattern.repeats.assign(static_cast<std::size_t>(every), false), m.moe_pattern.repeats.front() = true;
    m.dense_ffn = c.integer("intermediate_size");
  }
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
  c.must_be("rope_interleave", c.flag("rope_interleave", true), "true");
  RouterSpec& r = m.router;
  const bool v3 = c.text("model_type", "") != "deepseek_v2";
  r.score = c.text("scoring_func", v3 ? "sigmoid" : "softmax") == "sigmoid" ? RouterSpec::Score::sigmoid
                                                                            : RouterSpec::Score::softmax;
  const std::string method = c.text("topk_method", v3 ? "noaux_tc" : "greedy");
  c.must_be("topk_method", method == "greedy" || method == "group_limited_greedy" || method == "noaux_tc",
            "greedy, group_limited_greedy, noaux_tc");
  if (method != "greedy") {
    r.groups = c.integer_or("n_group", 1);
    r.top_groups = c.integer_or("topk_group", r.groups);
  }
  if (method == "group_limited_greedy") r.group_score = RouterSpec::GroupScore::best;
  if (method == "noaux_tc") r.bias_update_rate = 0.001;  // DeepSeek-V3 report, section 4.2
  r.normalize = c.flag("norm_topk_prob", v3);
  r.scale = c.number_or("routed_scaling_factor", v3 ? 2.5 : 1.0);
  r.aux_loss_weight = c.number_or("aux_loss_alpha", v3 ? 0.0001 : 0.001);
}

void read_mpt(const Config& c, ModelSpec& m) {
  const Config attention = c.map("attn_config");
  m.layers = c.layers("n_layers");
  m.d_model = c.integer("d_model");
  m.heads = m.kv_heads = c.integer("n_heads");
  m.head_dim = m.heads > 0 ? m.d_model / m.heads : 0;
  m.norm = Norm::layernorm;
  m.norm_eps = c.number_or("layer_norm_epsilon", m.norm_eps);
  m.activation = Activation::gelu;
  m.ffn = c.integer_or("expansion_ratio", 4) * m.d_model;
  m.tied = true;
  m.attention.alibi = true;
  m.attention.clip_qkv = attention.number_or("clip_qkv", 0);
  c.must_be("no_bias", c.flag("no_bias", true), "true");
  attention.must_be("alibi", attention.flag("alibi", true), "true");
  attention.must_be("alibi_bias_max", attention.number_or("alibi_bias_max", 8) == 8, "8");
  attention.must_be("qk_ln", !attention.flag("qk_ln", false), "false");
}

void read_falcon(const Config& c, ModelSpec& m) {
  m.layers = c.layers("num_hidden_layers");
  m.d_model = c.integer("hidden_size");
  m.heads = c.integer("num_attention_heads");
  const bool newer = c.flag("new_decoder_architecture", false), multi_query = c.flag("multi_query", true);
  m.kv_heads = newer ? c.integer_or("num_kv_heads", m.heads) : multi_query ? 1 : m.heads;
  m.head_dim = m.heads > 0 ? m.d_model / m.heads : 0;
  m.norm = Norm::layernorm;
  m.norm_bias = true;
  m.norm_eps = c.number_or("layer_norm_epsilon", m.norm_eps);
  m.activation = Activation::gelu;
  m.ffn = c.integer_or("ffn_hidden_size", 4 * m.d_model);
  m.tied = c.flag("tie_word_embeddings", true);
  read_rope(c, m);
  c.must_be("parallel_attn", newer || c.flag("parallel_attn", true), "true");
  c.must_be("bias", !c.flag("bias", false), "false");
  c.must_be("alibi", !c.flag("alibi", false), "false");
  c.must_be("activation", c.text("activation", "gelu") == "gelu", "gelu");
  m.attention.parallel = newer && c.integer_or("num_ln_in_parallel_attn", 2) == 2 ? AttentionSpec::Parallel::two_norms
                                                                                  : AttentionSpec::Parallel::one_norm;
}

void read_llama(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.ffn = c.integer("intermediate_size");
  m.ffn_bias = c.flag("mlp_bias", false);
}

void read_mistral(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  m.ffn = c.integer("intermediate_size");
  m.attention.window = c.object.contains("sliding_window") ? c.integer_or("sliding_window", 0) : 4096;  // MistralConfig
  read_layer_types(c, "sliding_attention", m);
}

void read_qwen2(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  m.attention.bias = AttentionSpec::Bias::qkv;
  m.ffn = c.integer("intermediate_size");
  read_qwen_window(c, true, m);
}

const std::map<std::string, void (*)(const Config&, ModelSpec&)> kFamilies = {{"dbrx", read_dbrx},
                                                                              {"mixtral", read_mixtral},
                                                                              {"olmoe", read_olmoe},
                                                                              {"qwen3_moe", read_qwen3_moe},
                                                                              {"qwen2_moe", read_qwen2_moe},
                                                                              {"qwen3_next", read_qwen3_next},
                                                                              {"nemotron_h", read_nemotron_h},
                                                                              {"gpt_oss", read_gpt_oss},
                                                                              {"llama4", read_llama4},
                                                                              {"llama4_text", read_llama4},
                                                                              {"glm4_moe", read_glm4_moe},
                                                                              {"kimi_k2", read_deepseek},
                                                                              {"mistral", read_mistral},
                                                                              {"deepseek_v2", read_deepseek},
                                                                              {"deepseek_v3", read_deepseek},
                                                                              {"mpt", read_mpt},
                                                                              {"falcon", read_falcon},
                                                                              {"llama", read_llama},
                                                                              {"qwen2", read_qwen2}};

/// The names of our keys in this file. Families use different names for one key; the one present counts.
std::map<std::string, std::string> key_names(const json& document) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> kNames{
      {"n_layers", {"num_hidden_layers", "n_layers"}},
      {"d_model", {"hidden_size", "d_model"}},
      {"n_heads", {"num_attention_heads", "n_heads"}},
      {"kv_n_heads", {"num_key_value_heads", "num_kv_heads", "attn_config/kv_n_heads"}},
      {"head_dim", {"head_dim", "qk_rope_head_dim"}},
      {"ffn_hidden_size",
       {"moe_intermediate_size", "intermediate_size", "ffn_config/ffn_hidden_size", "ffn_hidden_size",
        "expansion_ratio"}},
      {"dense_ffn_hidden_size", {"intermediate_size"}},
      {"moe_num_experts", {"n_routed_experts", "num_local_experts", "num_experts", "ffn_config/moe_num_experts"}},
      {"moe_top_k", {"num_experts_per_tok", "ffn_config/moe_top_k"}},
      {"first_k_dense", {"first_k_dense_replace"}},
      {"moe_layer_freq", {"decoder_sparse_step", "interleave_moe_layer_step", "moe_layers", "moe_layer_freq"}},
      {"mtp_num_layers", {"num_nextn_predict_layers"}},
      {"linear_config/key_heads", {"linear_num_key_heads", "n_groups"}},
      {"linear_config/value_heads", {"linear_num_value_heads", "mamba_num_heads"}},
      {"linear_config/key_head_dim", {"linear_key_head_dim", "ssm_state_size"}},
      {"linear_config/value_head_dim", {"linear_value_head_dim", "mamba_head_dim"}},
      {"linear_config/conv_kernel", {"linear_conv_kernel_dim", "conv_kernel"}},
      {"linear_config/chunk", {"chunk_size"}},
      {"moe_n_group", {"n_group"}},
      {"moe_topk_group", {"topk_group"}}};
  std::map<std::string, std::string> out;
  for (const auto& [ours, theirs] : kNames)
    for (const std::string& name : theirs)
      if (document.contains(json::json_pointer("/" + name))) {
        out.emplace(ours, name);
        break;
      }
  return out;
}

}  // namespace

ModelSpec model_from_hugging_face(const std::filesystem::path& path) {
  return model_from_hugging_face(read_json(path), path.string());
}

ModelSpec model_from_hugging_face(const json& document, const std::string& file, std::set<std::string>* asked) {
  if (!document.is_object()) throw_usage("{}: not a JSON object; needs a Hugging Face config.json", file);
  const Config config{document, file, "", asked};
  const std::string type = config.text("model_type", "");
  const auto family = kFamilies.find(type);
  if (family == kFamilies.end())
    throw_usage("{}: model_type: found '{}', reads {}", file, type, fmt::join(std::views::keys(kFamilies), ", "));
  ModelSpec m;
  m.source = file;
  const std::string name = config.text("_name_or_path", "");
  m.name = name.empty() ? type : name;
  const Config text = config.has("text_config") ? config.map("text_config") : config;
  m.vocab = text.integer("vocab_size");
  family->second(config, m);
  m.check(file, key_names(text.object));
  return m;
}

}  // namespace wt
