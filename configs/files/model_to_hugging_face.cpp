// Writes a model as the config.json of a family that can express it.
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/files/model.hpp"

namespace wt {
namespace {

using nlohmann::json;
using QkNorm = AttentionSpec::QkNorm;
using Parallel = AttentionSpec::Parallel;
using Bias = AttentionSpec::Bias;
using GroupScore = RouterSpec::GroupScore;

/// Adds "rope_scaling", and max_position_embeddings where the formula needs the stretched length.
void add_rope_scaling(const RopeScaling& s, json& out) {
  if (!s.on()) return;
  const RopeScaling usual;
  json scaling{{"rope_type", to_string(s.kind)}};
  for_rope_fields(s.kind, [&](const char* key, auto member, bool required) {
    if (required || s.*member != usual.*member) scaling[key] = s.*member;
  });
  out["rope_scaling"] = scaling;
  if (s.kind == RopeScaling::Kind::yarn)
    out["max_position_embeddings"] = std::llround(s.factor * static_cast<double>(s.original_max_position_embeddings));
}

json llama_keys(const ModelSpec& m) {
  json out{{"hidden_size", m.d_model},       {"num_hidden_layers", m.layers},
           {"num_attention_heads", m.heads}, {"num_key_value_heads", m.kv_heads},
           {"head_dim", m.head_dim},         {"intermediate_size", m.ffn},
           {"rms_norm_eps", m.norm_eps},     {"rope_theta", m.attention.rope_theta},
           {"hidden_act", "silu"},           {"attention_bias", m.attention.bias != Bias::none},
           {"tie_word_embeddings", m.tied}};
  add_rope_scaling(m.attention.rope_scaling, out);
  return out;
}

json llama(const ModelSpec& m) {
  json out = llama_keys(m);
  out["mlp_bias"] = m.ffn_bias;
  return out;
}

json window_or_null(const ModelSpec& m) { return m.attention.window > 0 ? json(m.attention.window) : json(); }

/// Adds "layer_types", one word a layer.
void add_layer_types(const ModelSpec& m, json& out) {
  for (std::int64_t layer = 0; layer < m.layers; ++layer)
    out["layer_types"].push_back(m.local_attention(layer) ? "sliding_attention" : "full_attention");
}

void add_qwen_window(const ModelSpec& m, json& out) {
  if (m.attention.window > 0) out["use_sliding_window"] = true, out["sliding_window"] = m.attention.window;
}

json mistral(const ModelSpec& m) {
  json out = llama_keys(m);
  out.erase("attention_bias");
  out["sliding_window"] = window_or_null(m);
  return out;
}

json qwen2(const ModelSpec& m) {
  json out = llama_keys(m);
  out.erase("attention_bias");  // this family always has biases of q, k and v
  add_qwen_window(m, out), add_layer_types(m, out);
  return out;
}

json qwen3(const ModelSpec& m) {
  json out = llama_keys(m);
  add_qwen_window(m, out), add_layer_types(m, out);
  return out;
}

json moe_keys(const ModelSpec& m) {
  json out = llama_keys(m);
  out["num_experts_per_tok"] = m.top_k;
  out["router_aux_loss_coef"] = m.router.aux_loss_weight;
  return out;
}

json mixtral(const ModelSpec& m) {
  json out = moe_keys(m);
  out["num_local_experts"] = m.experts;
  out["sliding_window"] = window_or_null(m);
  return out;
}

json gpt_oss(const ModelSpec& m) {
  json out = moe_keys(m);
  out["num_local_experts"] = m.experts;
  out["sliding_window"] = window_or_null(m);
  out["swiglu_limit"] = 7.0;
  if (!m.attention.rope_scaling.on()) out["rope_scaling"] = nullptr;  // GptOssConfig's default is not null
  add_layer_types(m, out);
  return out;
}

json olmoe(const ModelSpec& m) {
  json out = moe_keys(m);
  out["num_experts"] = m.experts;
  out["norm_topk_prob"] = m.router.normalize;
  out["clip_qkv"] = m.attention.clip_qkv > 0 ? json(m.attention.clip_qkv) : json();
  return out;
}

json qwen3_moe(const ModelSpec& m) {
  json out = moe_keys(m);
  out["num_experts"] = m.experts;
  out["moe_intermediate_size"] = m.ffn;
  out["norm_topk_prob"] = m.router.normalize;
  out["decoder_sparse_step"] = 1;
  out["mlp_only_layers"] = json::array();
  for (std::int64_t layer = 0; layer < m.layers; ++layer)
    if (!m.moe(layer)) out["mlp_only_layers"].push_back(layer), out["intermediate_size"] = m.dense_ffn;
  add_qwen_window(m, out);
  return out;
}

json deepseek(const ModelSpec& m) {
  const MlaSpec& a = m.attention.mla;
  const RouterSpec& r = m.router;
  const bool v3 = r.score == RouterSpec::Score::sigmoid;
  json out = llama_keys(m);
  out.erase("head_dim");
  out.update({{"kv_lora_rank", a.kv_lora_rank},
              {"q_lora_rank", a.q_lora_rank > 0 ? json(a.q_lora_rank) : json()},
              {"qk_nope_head_dim", a.qk_nope_head_dim},
              {"qk_rope_head_dim", a.qk_rope_head_dim},
              {"v_head_dim", a.v_head_dim},
              {"intermediate_size", m.dense_layers > 0 ? m.dense_ffn : m.ffn},
              {"moe_intermediate_size", m.ffn},
              {"n_routed_experts", m.experts},
              {"n_shared_experts", m.shared_ffn > 0 ? json(m.shared_ffn / m.ffn) : json()},
              {"num_experts_per_tok", m.top_k},
              {"first_k_dense_replace", m.dense_layers},
              {"norm_topk_prob", r.normalize},
              {"routed_scaling_factor", r.scale},
              {"scoring_func", v3 ? "sigmoid" : "softmax"},
              {"topk_method", v3             ? "noaux_tc"
                              : r.groups > 1 ? "group_limited_greedy"
                                             : "greedy"},
              {"n_group", r.groups},
              {"topk_group", r.top_groups},
              {"aux_loss_alpha", r.aux_loss_weight}});
  if (m.mtp_layers > 0) out["num_nextn_predict_layers"] = m.mtp_layers;
  return out;
}

json dbrx(const ModelSpec& m) {
  const AttentionSpec& a = m.attention;
  return {{"d_model", m.d_model},
          {"n_heads", m.heads},
          {"n_layers", m.layers},
          {"tie_word_embeddings", false},
          {"attn_config",
           {{"kv_n_heads", m.kv_heads},
            {"rope_theta", a.rope_theta},
            {"clip_qkv", a.clip_qkv > 0 ? json(a.clip_qkv) : json()}}},
          {"ffn_config",
           {{"ffn_hidden_size", m.ffn},
            {"moe_num_experts", m.experts},
            {"moe_top_k", m.top_k},
            {"moe_normalize_expert_weights", m.router.normalize ? json(1) : json()},
            {"moe_loss_weight", m.router.aux_loss_weight}}}};
}

json mpt(const ModelSpec& m) {
  return {
      {"d_model", m.d_model},
      {"n_heads", m.heads},
      {"n_layers", m.layers},
      {"expansion_ratio", m.ffn / m.d_model},
      {"no_bias", true},
      {"layer_norm_epsilon", m.norm_eps},
      {"attn_config", {{"alibi", true}, {"clip_qkv", m.attention.clip_qkv > 0 ? json(m.attention.clip_qkv) : json()}}}};
}

json falcon(const ModelSpec& m) {
  const bool newer = m.attention.parallel == Parallel::two_norms || (m.kv_heads != 1 && m.kv_heads != m.heads);
  json out{{"hidden_size", m.d_model},
           {"num_hidden_layers", m.layers},
           {"num_attention_heads", m.heads},
           {"num_kv_heads", m.kv_heads},
           {"new_decoder_architecture", newer},
           {"num_ln_in_parallel_attn", m.attention.parallel == Parallel::two_norms ? 2 : 1},
           {"multi_query", !newer && m.kv_heads == 1},
           {"parallel_attn", true},
           {"bias", false},
           {"alibi", false},
           {"ffn_hidden_size", m.ffn},
           {"layer_norm_epsilon", m.norm_eps},
           {"rope_theta", m.attention.rope_theta},
           {"tie_word_embeddings", m.tied}};
  add_rope_scaling(m.attention.rope_scaling, out);
  return out;
}

/// A family's name, its class in transformers, and the function that writes its keys.
struct Family {
  const char* name;
  const char* architecture;
  json (*keys)(const ModelSpec&);
};

[[noreturn]] void refuse(const ModelSpec& m) {
  throw_usage(
      "model {}: no family's config.json can say this model (known: dbrx, mixtral, olmoe, qwen3, qwen3_moe, gpt_oss, "
      "deepseek_v2, deepseek_v3, mpt, falcon, llama, mistral, qwen2); change the model or keep our own checkpoints",
      m.name);
}

Family family(const ModelSpec& m) {
  if (const auto lacks = m.untrainable(); !lacks.empty())
    throw_usage("model {}: no config.json is written for a model with {}, which is only simulated", m.name,
                lacks.front());
  const AttentionSpec& a = m.attention;
  const RouterSpec& r = m.router;
  const bool softmax = r.score == RouterSpec::Score::softmax && r.bias_update_rate == 0;
  const bool routed = m.experts > 0 && m.shared_ffn == 0 && softmax && r.scale == 1 && r.groups == 1,
             only_routed = routed && m.moe_layers() == m.layers;
  const bool pre_norm = m.norm == Norm::rmsnorm && !a.alibi && a.parallel == Parallel::none;
  const bool bare = !a.mla.on() && a.qk_norm == QkNorm::none && a.clip_qkv == 0;
  if (pre_norm && only_routed && bare && r.normalize && a.bias == Bias::all && a.sinks && m.ffn_bias && a.chunk == 0 &&
      m.activation == Activation::clamped_swiglu)
    return {"gpt_oss", "GptOssForCausalLM", gpt_oss};
  if (m.learned_positions > 0 || a.qk_layernorm) refuse(m);
  if (a.sinks || a.chunk > 0 || m.activation == Activation::clamped_swiglu) refuse(m);
  if (m.mtp_layers > 0 && (!a.mla.on() || r.score != RouterSpec::Score::sigmoid)) refuse(m);  // only deepseek_v3 has it
  const bool llama_like = pre_norm && m.activation == Activation::swiglu;
  if (llama_like && m.experts == 0 && bare && a.bias != Bias::qkv && !a.any_local())
    return {"llama", "LlamaForCausalLM", llama};
  if (m.ffn_bias) refuse(m);
  if (llama_like && m.experts == 0 && bare && a.bias == Bias::qkv) return {"qwen2", "Qwen2ForCausalLM", qwen2};
  if (llama_like && m.experts == 0 && a.bias != Bias::qkv && !a.mla.on() && a.qk_norm == QkNorm::head &&
      a.clip_qkv == 0)
    return {"qwen3", "Qwen3ForCausalLM", qwen3};
  const bool everywhere = !a.any_local() || a.local.repeats.empty();
  if (llama_like && everywhere && a.bias != Bias::qkv) {
    if (m.experts == 0 && bare && a.bias == Bias::none) return {"mistral", "MistralForCausalLM", mistral};
    if (only_routed && bare && r.normalize && a.bias == Bias::none) return {"mixtral", "MixtralForCausalLM", mixtral};
    if (routed && a.qk_norm == QkNorm::head && a.clip_qkv == 0) return {"qwen3_moe", "Qwen3MoeForCausalLM", qwen3_moe};
  }
  if (a.any_local()) refuse(m);
  if (llama_like && a.bias != Bias::qkv) {
    if (only_routed && a.qk_norm == QkNorm::full) return {"olmoe", "OlmoeForCausalLM", olmoe};
    const bool latent = a.mla.on() && m.experts > 0 && m.shared_ffn % m.ffn == 0 && m.moe_pattern.repeats.empty();
    const bool two_best = r.group_score == GroupScore::two_best;
    if (latent && softmax && (r.groups == 1 || !two_best)) return {"deepseek_v2", "DeepseekV2ForCausalLM", deepseek};
    if (latent && r.score == RouterSpec::Score::sigmoid && r.bias_update_rate > 0 && (r.groups == 1 || two_best))
      return {"deepseek_v3", "DeepseekV3ForCausalLM", deepseek};
  }
  const bool unbiased = a.bias == Bias::none;
  if (unbiased && !a.rope_scaling.on() && m.norm == Norm::layernorm && a.qk_norm == QkNorm::none &&
      a.parallel == Parallel::none && !m.norm_bias) {
    if (only_routed && !a.alibi && !m.tied && m.norm_eps == 1e-5 && m.activation == Activation::swiglu)
      return {"dbrx", "DbrxForCausalLM", dbrx};
    if (m.experts == 0 && m.activation == Activation::gelu && a.alibi && m.tied && m.kv_heads == m.heads &&
        m.ffn % m.d_model == 0)
      return {"mpt", "MptForCausalLM", mpt};
  }
  if (unbiased && m.norm_bias && m.activation == Activation::gelu && a.parallel != Parallel::none && a.clip_qkv == 0 &&
      !a.alibi && a.qk_norm == QkNorm::none)
    return {"falcon", "FalconForCausalLM", falcon};
  refuse(m);
}

}  // namespace

std::string family_of(const ModelSpec& model) { return family(model).name; }

json config_json(const ModelSpec& m) {
  const Family own = family(m);
  json out = own.keys(m);
  out["model_type"] = own.name;
  out["architectures"] = {own.architecture};
  out["vocab_size"] = m.vocab;
  return out;
}

}  // namespace wt
