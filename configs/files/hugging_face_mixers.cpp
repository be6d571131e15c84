// Families with linear mixers between layers of attention.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "configs/files/hugging_face_families.hpp"

namespace wt {
namespace {

using Config = HuggingFaceConfig;
using Kind = LinearMixerSpec::Kind;
using QkNorm = AttentionSpec::QkNorm;

/// Qwen3-Next's attention and its gated delta net.
void read_qwen_mixers(const Config& c, ModelSpec& m) {
  read_attention_bias(c, m.attention);
  m.attention.qk_norm = QkNorm::head;
  m.attention.output_gate = true;
  LinearMixerSpec& l = m.linear;
  l.kind = Kind::gated_delta_net;
  l.key_heads = c.integer("linear_num_key_heads");
  l.value_heads = c.integer("linear_num_value_heads");
  l.key_head_dim = c.integer("linear_key_head_dim");
  l.value_head_dim = c.integer("linear_value_head_dim");
  l.conv_kernel = c.integer_or("linear_conv_kernel_dim", 4);
  l.chunk = 64;  // as in transformers' torch_chunk_gated_delta_rule and flash-linear-attention's kernels
  const std::int64_t every = c.integer_or("full_attention_interval", 4);
  c.must_be("full_attention_interval", every >= 1, "a whole number >= 1");
  read_mixer_layers(c, {"linear_attention"}, every, m);
  if (c.integer_or("mtp_num_hidden_layers", 0) > 0)
    m.approximations.push_back("the module of multi-token prediction is left out");
}

void read_qwen3_next(const Config& c, ModelSpec& m) {
  read_qwen_moe(c, m, {.rotary = 0.25});
  m.router.normalize = c.flag("norm_topk_prob", true);
  read_qwen_mixers(c, m);
  m.shared_ffn = c.integer("shared_expert_intermediate_size");
  simulate_only(m, "shared_expert_gate");
}

void read_qwen3_5(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m, {.rotary = 0.25});
  read_qwen_mixers(c, m);
  m.ffn = c.integer("intermediate_size");
}

/// Every layer has a mixer, then an FFN, or experts beside a shared one.
void read_granite_hybrid(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  if (c.text("position_embedding_type", "nope") != "rope") simulate_only(m, "no_position_embeddings");
  LinearMixerSpec& l = m.linear;
  l.kind = Kind::mamba2;
  l.value_heads = c.integer_or("mamba_n_heads", 128);
  const std::int64_t inner = c.integer_or("mamba_expand", 2) * m.d_model;
  l.value_head_dim = c.has("mamba_d_head") && c.object["mamba_d_head"].is_number()
                         ? c.integer("mamba_d_head")
                         : inner / std::max<std::int64_t>(1, l.value_heads);
  l.key_heads = c.integer_or("mamba_n_groups", 1);
  l.key_head_dim = c.integer_or("mamba_d_state", 256);
  l.conv_kernel = c.integer_or("mamba_d_conv", 4);
  l.chunk = c.integer_or("mamba_chunk_size", 256);
  c.must_be("mamba_proj_bias", !c.flag("mamba_proj_bias", false), "false");
  read_mixer_layers(c, {"mamba", "linear_attention"}, 0, m);
  const std::int64_t shared = c.integer_or("shared_intermediate_size", 0);
  if (c.integer_or("num_local_experts", 0) == 0) {
    m.ffn = shared > 0 ? shared : c.integer("intermediate_size");
    return;
  }
  read_experts(c, m);
  m.shared_ffn = shared;
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", 0.001);
}

/// attn_type_list of MiniMax's own files: 0 = lightning attention, 1 = softmax attention.
nlohmann::json with_layer_types(const Config& c) {
  nlohmann::json out = c.object;
  if (!c.has("attn_type_list")) return out;
  out["layer_types"] = nlohmann::json::array();
  for (const nlohmann::json& type : c.object["attn_type_list"]) {
    c.must_be("attn_type_list", type == 0 || type == 1, "0, 1", type.dump());
    out["layer_types"].push_back(type == 1 ? "full_attention" : "linear_attention");
  }
  return out;
}

/// Lightning attention has as many heads as softmax attention, and a gate as wide as its output.
void read_minimax(const Config& whole, ModelSpec& m) {
  const nlohmann::json with = with_layer_types(whole);
  const Config c{with, whole.file, whole.in, whole.asked};
  m.attention.rope_theta = 1e6;
  read_llama_like(c, m);
  LinearMixerSpec& l = m.linear;
  l.kind = Kind::lightning;
  l.key_heads = l.value_heads = m.heads;
  l.key_head_dim = l.value_head_dim = m.head_dim;
  l.chunk = c.integer_or("block_size", 256);
  read_mixer_layers(c, {"linear_attention"}, 2, m);
  read_experts(c, m);
  m.shared_ffn = c.integer_or("shared_intermediate_size", 0);
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", 0.001);
  simulate_only(m, "alpha and beta of the residual");
}

/// Kimi delta attention; the layers of latent attention have no positions.
void read_kimi_linear(const Config& c, ModelSpec& m) {
  MlaSpec& a = m.attention.mla;
  a.kv_lora_rank = c.integer("kv_lora_rank");
  a.q_lora_rank = c.integer_or("q_lora_rank", 0);
  a.qk_nope_head_dim = c.integer("qk_nope_head_dim");
  a.qk_rope_head_dim = c.integer("qk_rope_head_dim");
  a.v_head_dim = c.integer("v_head_dim");
  read_llama_like(c, m);
  m.kv_heads = m.heads;
  m.head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  LinearMixerSpec& l = m.linear;
  const Config own = c.map("linear_attn_config");
  l.kind = Kind::kimi_delta;
  l.key_heads = l.value_heads = own.integer_or("num_heads", c.integer_or("linear_num_heads", m.heads));
  l.key_head_dim = l.value_head_dim = own.integer_or("head_dim", c.integer_or("linear_head_dim", 128));
  l.conv_kernel = own.integer_or("short_conv_kernel_size", c.integer_or("linear_conv_kernel_dim", 4));
  l.chunk = 64;                       // flash-linear-attention's kernels
  if (own.has("full_attn_layers")) {  // layers count from 1
    std::vector<bool> layers(static_cast<std::size_t>(m.layers), true);
    for (const nlohmann::json& layer : own.object["full_attn_layers"]) {
      own.must_be("full_attn_layers", layer.is_number_integer() && layer >= 1 && layer <= m.layers,
                  "numbers of layers from 1 on", layer.dump());
      layers[layer.get<std::size_t>() - 1] = false;
    }
    l.set_layers(std::move(layers));
  } else {
    read_mixer_layers(c, {"linear_attention"}, 4, m);
  }
  read_experts(c, m);
  read_dense_layers(c, 1, m);
  read_sigmoid_router(c, m.router);
  m.router.normalize = c.flag("moe_renormalize", m.router.normalize);
  m.router.groups = c.integer_or("num_expert_group", m.router.groups);
  simulate_only(m, "no_position_embeddings");
}

/// Short convolutions between two gates.
void read_short_convolutions(const Config& c, ModelSpec& m) {
  m.tied = c.flag("tie_embedding", true), m.attention.rope_theta = 1e6;
  read_llama_like(c, m);
  m.norm_eps = c.number_or("norm_eps", m.norm_eps);
  m.attention.qk_norm = QkNorm::head;
  c.must_be("conv_bias", !c.flag("conv_bias", false), "false");
  LinearMixerSpec& l = m.linear;
  l.kind = Kind::short_conv;
  l.key_heads = l.value_heads = m.heads;
  l.key_head_dim = l.value_head_dim = m.heads > 0 ? m.d_model / m.heads : 0;
  l.conv_kernel = c.integer_or("conv_L_cache", 3);
  l.chunk = 1;
  if (!c.has("full_attn_idxs")) return read_mixer_layers(c, {"conv"}, 0, m);
  std::vector<bool> layers(static_cast<std::size_t>(m.layers), true);
  for (const nlohmann::json& layer : c.object["full_attn_idxs"]) {
    c.must_be("full_attn_idxs", layer.is_number_integer() && layer >= 0 && layer < m.layers, "numbers of layers",
              layer.dump());
    layers[layer.get<std::size_t>()] = false;
  }
  l.set_layers(std::move(layers));
}

/// Two thirds of intermediate_size, times a factor, rounded up, unless the file switches that off.
void read_lfm2(const Config& c, ModelSpec& m) {
  read_short_convolutions(c, m);
  m.ffn = c.any({"intermediate_size", "block_ff_dim"});
  if (!c.flag("block_auto_adjust_ff_dim", true)) return;
  const std::int64_t multiple = std::max<std::int64_t>(1, c.integer_or("block_multiple_of", 256));
  m.ffn = static_cast<std::int64_t>(c.number_or("block_ffn_dim_multiplier", 1) * static_cast<double>(2 * m.ffn / 3));
  m.ffn = (m.ffn + multiple - 1) / multiple * multiple;
}

void read_lfm2_moe(const Config& c, ModelSpec& m) {
  read_short_convolutions(c, m);
  read_experts(c, m);
  read_dense_layers(c, 2, m);
  read_sigmoid_router(c, m.router);
  if (!c.flag("use_expert_bias", true)) m.router.bias_update_rate = 0;
}

}  // namespace

const Families& mixer_families() {
  static const Families kFamilies{{"granitemoehybrid", read_granite_hybrid},
                                  {"kimi_linear", read_kimi_linear},
                                  {"lfm2", read_lfm2},
                                  {"lfm2_moe", read_lfm2_moe},
                                  {"minimax", read_minimax},
                                  {"minimax_m1", read_minimax},
                                  {"minimax_text_01", read_minimax},
                                  {"nemotron_h", read_nemotron_h},
                                  {"qwen3_5_moe_text", read_qwen3_next},
                                  {"qwen3_5_text", read_qwen3_5},
                                  {"qwen3_next", read_qwen3_next}};
  return kFamilies;
}

}  // namespace wt
