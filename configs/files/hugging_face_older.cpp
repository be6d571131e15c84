// Blocks from before Llama: learned positions, linear biases, LayerNorm, and attention beside the FFN.
#include "configs/files/hugging_face_families.hpp"

namespace wt {
namespace {

using Config = HuggingFaceConfig;
using Parallel = AttentionSpec::Parallel;
using Bias = AttentionSpec::Bias;

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
  m.attention.parallel =
      newer && c.integer_or("num_ln_in_parallel_attn", 2) == 2 ? Parallel::two_norms : Parallel::one_norm;
}

/// GPT-2's block: LayerNorm and products with biases, an FFN without a gate.
void read_biased_block(ModelSpec& m) {
  m.norm = Norm::layernorm, m.norm_bias = true, m.ffn_bias = true;
  m.attention.bias = Bias::all;
}

void read_gpt2(const Config& c, ModelSpec& m) {
  read_biased_block(m);
  m.layers = c.layers("n_layer");
  m.d_model = c.integer("n_embd");
  m.heads = m.kv_heads = c.integer("n_head");
  m.head_dim = m.heads > 0 ? m.d_model / m.heads : 0;
  m.norm_eps = c.number_or("layer_norm_epsilon", m.norm_eps);
  m.ffn = c.integer_or("n_inner", 4 * m.d_model);
  m.learned_positions = c.integer_or("n_positions", c.integer_or("n_ctx", 1024));
  m.tied = c.flag("tie_word_embeddings", true);
  read_activation(c, "activation_function", "gelu_new", false, m);
}

void read_gpt_bigcode(const Config& c, ModelSpec& m) {
  read_gpt2(c, m);
  if (c.flag("multi_query", true)) m.kv_heads = 1;
}

void read_opt(const Config& c, ModelSpec& m) {
  read_biased_block(m);
  m.layers = c.layers("num_hidden_layers");
  m.d_model = c.integer("hidden_size");
  m.heads = m.kv_heads = c.integer("num_attention_heads");
  m.head_dim = m.heads > 0 ? m.d_model / m.heads : 0;
  m.ffn = c.integer("ffn_dim");
  m.learned_positions = c.integer("max_position_embeddings") + 2;  // OPTLearnedPositionalEmbedding's offset
  m.tied = true;
  c.must_be("do_layer_norm_before", c.flag("do_layer_norm_before", true), "true");
  c.must_be("word_embed_proj_dim", c.integer_or("word_embed_proj_dim", m.d_model) == m.d_model, "hidden_size");
  read_activation(c, "activation_function", "relu", false, m);
}

void read_gpt_neox(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.rotary = c.number_or("rotary_pct", 0.25), .activation = "gelu", .gated = false});
  read_biased_block(m);
  m.attention.rope_theta = c.number_or("rotary_emb_base", m.attention.rope_theta);
  if (!c.flag("attention_bias", true)) m.attention.bias = Bias::none;
  m.norm_eps = c.number_or("layer_norm_eps", m.norm_eps);
  if (c.flag("use_parallel_residual", true)) m.attention.parallel = Parallel::two_norms;
  m.ffn = c.integer("intermediate_size");
}

/// Phi-1 to Phi-2. The output projection's bias is left out.
void read_phi(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.rotary = 0.5, .activation = "gelu_new", .gated = false});
  read_biased_block(m);
  m.norm_eps = c.number_or("layer_norm_eps", m.norm_eps);
  m.attention.parallel = Parallel::one_norm;
  simulate_only(m, "lm_head bias");
  c.must_be("qk_layernorm", !c.flag("qk_layernorm", false), "false");
  m.ffn = c.integer("intermediate_size");
}

void read_stablelm(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.rotary = 0.25});
  m.norm = Norm::layernorm, m.norm_bias = true;
  m.norm_eps = c.number_or("layer_norm_eps", m.norm_eps);
  if (c.flag("use_qkv_bias", false)) m.attention.bias = Bias::qkv;
  if (c.flag("use_parallel_residual", false)) m.attention.parallel = Parallel::one_norm;
  c.must_be("qk_layernorm", !c.flag("qk_layernorm", false), "false");
  m.ffn = c.integer("intermediate_size");
}

void read_cohere(const Config& c, ModelSpec& m) {
  m.tied = true;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.norm = Norm::layernorm;
  m.norm_eps = c.number_or("layer_norm_eps", m.norm_eps);
  m.attention.parallel = Parallel::one_norm;
  if (c.flag("use_qk_norm", false))  // LayerNorm over each head, with a weight of its own in every head
    m.attention.qk_norm = AttentionSpec::QkNorm::full, m.attention.qk_layernorm = true;
  simulate_only(m, "logit_scale"), simulate_only(m, "rope_interleaved");
  m.ffn = c.integer("intermediate_size");
}

/// Three layers of windows, then one that sees everything, without positions.
void read_cohere2(const Config& c, ModelSpec& m) {
  read_cohere(c, m);
  read_alternating_windows(c, 4096, 4, m);
  simulate_only(m, "no_rope_layers");
}

}  // namespace

const Families& older_families() {
  static const Families kFamilies{{"cohere", read_cohere},
                                  {"cohere2", read_cohere2},
                                  {"falcon", read_falcon},
                                  {"gpt2", read_gpt2},
                                  {"gpt_bigcode", read_gpt_bigcode},
                                  {"gpt_neox", read_gpt_neox},
                                  {"mpt", read_mpt},
                                  {"opt", read_opt},
                                  {"phi", read_phi},
                                  {"stablelm", read_stablelm}};
  return kFamilies;
}

}  // namespace wt
