// Dense families of Llama's form.
#include "configs/files/hugging_face_families.hpp"

namespace wt {
namespace {

using Config = HuggingFaceConfig;
using QkNorm = AttentionSpec::QkNorm;
using Bias = AttentionSpec::Bias;

void read_ffn_width(const Config& c, ModelSpec& m) { m.ffn = c.integer("intermediate_size"); }

void read_llama(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  read_ffn_width(c, m);
}

void read_mistral(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_ffn_width(c, m);
  m.attention.window = c.object.contains("sliding_window") ? c.integer_or("sliding_window", 0) : 4096;  // MistralConfig
  read_layer_types(c, "sliding_attention", m);
}

/// Ministral 3 scales queries by their position (rope_parameters.llama_4_scaling_beta), which read_rope names.
void read_ministral3(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_ffn_width(c, m);
  m.attention.window = c.integer_or("sliding_window", 0);
  read_layer_types(c, "sliding_attention", m);
}

void read_qwen2(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  m.attention.bias = Bias::qkv;
  read_ffn_width(c, m);
  read_qwen_window(c, true, m);
}

void read_mimo(const Config& c, ModelSpec& m) {
  read_qwen2(c, m);
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
  if (m.mtp_layers > 0) simulate_only(m, "num_nextn_predict_layers");  // joins hidden state and embedding otherwise
}

void read_qwen3(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.attention.qk_norm = QkNorm::head;
  read_ffn_width(c, m);
  read_qwen_window(c, true, m);
}

void read_seed_oss(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  if (c.flag("attention_bias", true)) m.attention.bias = c.flag("attention_out_bias", false) ? Bias::all : Bias::qkv;
  read_ffn_width(c, m);
}

void read_internlm3(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  if (c.flag("qkv_bias", c.flag("attention_bias", false))) m.attention.bias = Bias::all;
  m.ffn_bias = c.flag("bias", m.ffn_bias);
  read_ffn_width(c, m);
}

/// InternLM2 and Yi-like files of their own model_type: Llama's block.
void read_internlm2(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  c.must_be("bias", !c.flag("bias", false), "false");
  read_ffn_width(c, m);
}

/// Without a gate: relu2 in the trainer's place is GELU, so only simulated.
void read_arcee(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.activation = "relu2", .gated = false});
  read_attention_bias(c, m.attention);
  read_ffn_width(c, m);
}

void read_apertus(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.activation = "xielu", .gated = false});
  read_attention_bias(c, m.attention);
  m.attention.qk_norm = QkNorm::head;
  read_ffn_width(c, m);
}

void read_nemotron(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.rotary = 0.5, .activation = "relu2", .gated = false});
  m.norm = Norm::layernorm, m.norm_bias = true;  // LayerNorm1P: its gain is 1 + weight
  m.norm_eps = c.number_or("norm_eps", 1e-5);
  read_attention_bias(c, m.attention);
  read_ffn_width(c, m);
}

void read_starcoder2(const Config& c, ModelSpec& m) {
  m.tied = true;
  read_llama_like(c, m, {.activation = "gelu_pytorch_tanh", .gated = false});
  m.norm = Norm::layernorm, m.norm_bias = true;
  m.norm_eps = c.number_or("norm_epsilon", 1e-5);
  m.ffn_bias = c.flag("use_bias", true);
  m.attention.bias = m.ffn_bias ? Bias::all : Bias::none;
  m.attention.window = c.integer_or("sliding_window", 0);
  read_ffn_width(c, m);
}

/// Every fourth layer without positions.
void read_smollm3(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6, m.tied = true, m.attention.rope_theta = 2000000;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  simulate_only(m, "no_rope_layers");
  read_ffn_width(c, m);
}

void read_phi3(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  m.attention.window = c.integer_or("sliding_window", 0);
  read_ffn_width(c, m);
}

void read_granite(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama(c, m);
}

/// Files leave tie_word_embeddings out, and the class ties them.
void read_minicpm(const Config& c, ModelSpec& m) {
  m.tied = true;
  read_llama_like(c, m);
  for (const char* key : {"scale_depth", "dim_model_base"})
    if (c.has(key)) simulate_only(m, key);
  read_ffn_width(c, m);
}

/// OLMo's norms have no weights, so that the count is 2 d_model a layer too high.
void read_olmo(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.attention.clip_qkv = c.number_or("clip_qkv", 0);
  m.norm = Norm::layernorm;
  simulate_only(m, "norms without weights");
  read_ffn_width(c, m);
}

void read_olmo2(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.norm_placement = NormPlacement::after;
  m.attention.qk_norm = QkNorm::full;
  read_ffn_width(c, m);
}

void read_olmo3(const Config& c, ModelSpec& m) {
  read_olmo2(c, m);
  read_alternating_windows(c, 4096, 4, m);
}

void read_exaone4(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  m.norm_placement = NormPlacement::after;
  m.attention.qk_norm = QkNorm::head;
  read_alternating_windows(c, 4096, 4, m);
  if (m.attention.any_local()) simulate_only(m, "no_rope_layers");  // the layers without windows
  read_ffn_width(c, m);
}

/// EXAONE 3 and 3.5: GPT-2's words for Llama's block.
void read_exaone(const Config& c, ModelSpec& m) {
  m.layers = c.layers("num_layers");
  m.d_model = c.integer("hidden_size");
  m.heads = c.integer("num_attention_heads");
  m.kv_heads = c.integer_or("num_key_value_heads", m.heads);
  m.head_dim = c.integer_or("head_dim", m.heads > 0 ? m.d_model / m.heads : 0);
  m.norm_eps = c.number_or("layer_norm_epsilon", m.norm_eps);
  m.tied = c.flag("tie_word_embeddings", false);
  read_rope(c, m);
  read_activation(c, "activation_function", "silu", true, m);
  read_ffn_width(c, m);
}

void read_glm(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.rotary = 0.5});
  if (c.flag("attention_bias", true)) m.attention.bias = Bias::qkv;
  simulate_only(m, "rope_interleaved");
  read_ffn_width(c, m);
}

void read_glm4(const Config& c, ModelSpec& m) {
  read_glm(c, m);
  m.norm_placement = NormPlacement::both;
}

/// Ernie and Helium rotate neighbouring elements instead of halves.
void read_interleaved(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  simulate_only(m, "rope_interleaved");
  read_ffn_width(c, m);
}

void read_ernie(const Config& c, ModelSpec& m) {
  m.tied = true, m.attention.rope_theta = 500000;
  read_interleaved(c, m);
  m.ffn_bias = c.flag("use_bias", false);
  if (m.ffn_bias) m.attention.bias = Bias::all;
}

void read_hunyuan(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  if (c.flag("use_qk_norm", true)) m.attention.qk_norm = QkNorm::head, simulate_only(m, "qk_norm after rope");
  read_ffn_width(c, m);
}

/// Embeddings are multiplied by the square root of the width, and norms by 1 + weight.
void read_gemma(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6, m.tied = true;
  read_llama_like(c, m, {.activation_key = "hidden_activation", .activation = "gelu_pytorch_tanh"});
  read_attention_bias(c, m.attention);
  simulate_only(m, "embedding_scale");
  read_ffn_width(c, m);
}

void read_gemma2(const Config& c, ModelSpec& m) {
  read_gemma(c, m);
  m.norm_placement = NormPlacement::both;
  read_alternating_windows(c, 4096, 2, m);
}

void read_gemma3(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 1000000;
  read_gemma(c, m);
  m.norm_placement = NormPlacement::both;
  m.attention.qk_norm = QkNorm::head;
  read_alternating_windows(c, 4096, 6, m);
  if (m.attention.any_local()) simulate_only(m, "rotary positions by layer type");
}

void read_cwm(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 1000000;
  read_llama_like(c, m);
  read_alternating_windows(c, 8192, 4, m);
  read_ffn_width(c, m);
}

}  // namespace

const Families& dense_families() {
  static const Families kFamilies{{"apertus", read_apertus},
                                  {"arcee", read_arcee},
                                  {"cwm", read_cwm},
                                  {"ernie4_5", read_ernie},
                                  {"exaone", read_exaone},
                                  {"exaone4", read_exaone4},
                                  {"gemma", read_gemma},
                                  {"gemma2", read_gemma2},
                                  {"gemma3_text", read_gemma3},
                                  {"glm", read_glm},
                                  {"glm4", read_glm4},
                                  {"glm4v_text", read_glm4},
                                  {"granite", read_granite},
                                  {"helium", read_interleaved},
                                  {"hunyuan_v1_dense", read_hunyuan},
                                  {"internlm2", read_internlm2},
                                  {"internlm3", read_internlm3},
                                  {"llama", read_llama},
                                  {"mimo", read_mimo},
                                  {"minicpm", read_minicpm},
                                  {"ministral", read_mistral},
                                  {"ministral3", read_ministral3},
                                  {"mistral", read_mistral},
                                  {"nemotron", read_nemotron},
                                  {"olmo", read_olmo},
                                  {"olmo2", read_olmo2},
                                  {"olmo3", read_olmo3},
                                  {"phi3", read_phi3},
                                  {"qwen2", read_qwen2},
                                  {"qwen2_5_vl", read_qwen2},
                                  {"qwen2_5_vl_text", read_qwen2},
                                  {"qwen2_vl", read_qwen2},
                                  {"qwen2_vl_text", read_qwen2},
                                  {"qwen3", read_qwen3},
                                  {"qwen3_vl_text", read_qwen3},
                                  {"seed_oss", read_seed_oss},
                                  {"smollm3", read_smollm3},
                                  {"starcoder2", read_starcoder2}};
  return kFamilies;
}

}  // namespace wt
