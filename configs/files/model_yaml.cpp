// A model in our YAML: LLM Foundry's keys where it has them, otherwise Hugging Face's (DeepSeek, Falcon).
#include <array>

#include "configs/base/yaml.hpp"
#include "configs/files/limits.hpp"
#include "configs/files/model.hpp"

namespace wt {
namespace {

using QkNorm = AttentionSpec::QkNorm;
using Parallel = AttentionSpec::Parallel;
using Bias = AttentionSpec::Bias;
using GroupScore = RouterSpec::GroupScore;

/// A list of 0 and 1 that repeats over the layers. Megatron's moe_layer_freq may also be a number n: the first of every
/// n layers.
LayerPattern read_pattern(YamlMap& map, const char* key, bool number_allowed) {
  LayerPattern out;
  if (!map.has(key)) return out;
  const YAML::Node node = map.node(key);
  if (node.IsScalar() && number_allowed) {
    const std::int64_t every = map.integer(key, 1);
    if (every > 1) out.repeats.assign(static_cast<std::size_t>(every), false), out.repeats.front() = true;
    return out;
  }
  if (!node.IsSequence() || node.size() == 0)
    map.fail(key, "needs a list of 0 and 1 that repeats over the layers{}",
             number_allowed ? ", or a number n: experts in the first layer of every n" : "");
  const std::vector<std::int64_t> entries = map.integers(key);
  std::vector<bool> layers;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] != 0 && entries[i] != 1) map.fail_entry(key, i, "found {}, allowed are 0 and 1", entries[i]);
    layers.push_back(entries[i] == 1);
  }
  return LayerPattern::of(std::move(layers));
}

void read_attention(YamlMap map, ModelSpec& m) {
  m.kv_heads = map.integer_or("kv_n_heads", m.heads, 1);
  AttentionSpec& a = m.attention;
  a.mla.kv_lora_rank = map.integer_or("kv_lora_rank", 0, 0);
  if (a.mla.on()) {
    a.mla.q_lora_rank = map.integer_or("q_lora_rank", 0, 0);
    a.mla.qk_nope_head_dim = map.integer("qk_nope_head_dim", 1);
    a.mla.qk_rope_head_dim = map.integer("qk_rope_head_dim", 1);
    a.mla.v_head_dim = map.integer("v_head_dim", 1);
    m.head_dim = a.mla.qk_nope_head_dim + a.mla.qk_rope_head_dim;
  } else {
    a.mla.q_lora_rank = map.integer_or("q_lora_rank", 0, 0);
    m.head_dim = map.integer_or("head_dim", m.d_model / m.heads, 1);
  }
  const bool full = map.boolean("qk_ln", false), head = map.boolean("qk_gn", false);
  if (full && head) map.fail("qk_gn", "found with qk_ln, needs one of them");
  a.qk_norm = full ? QkNorm::full : head ? QkNorm::head : QkNorm::none;
  a.qk_layernorm = map.choice("qk_norm_type", {"rmsnorm", "layernorm"}, "rmsnorm") == "layernorm";
  a.clip_qkv = map.number_or("clip_qkv", 0, 0.0);
  a.alibi = map.boolean("alibi", false);
  a.rope_theta = map.number_or("rope_theta", a.rope_theta, 1.0);
  if (map.has("rope_scaling")) a.rope_scaling = rope_scaling_from_yaml(map.map("rope_scaling"));
  a.bias = map.enumerator("attention_bias", std::array{"none", "qkv", "all"}, Bias::none);
  if (map.boolean("parallel_attn", false))
    a.parallel = map.integer_or("num_ln_in_parallel_attn", 1, 1) == 1 ? Parallel::one_norm : Parallel::two_norms;
  a.window = map.integer_or("sliding_window", 0, 0);
  a.chunk = map.integer_or("attention_chunk_size", 0, 0);
  a.local = read_pattern(map, "sliding_window_layers", false);
  a.indexer.top_keys = map.integer_or("index_topk", 0, 0);
  if (a.indexer.on())
    a.indexer.heads = map.integer("index_n_heads", 1), a.indexer.head_dim = map.integer("index_head_dim", 1);
  a.shared_kv = map.boolean("shared_kv", false);
  a.out_rank = map.integer_or("o_lora_rank", 0, 0);
  if (a.out_rank > 0) a.out_groups = map.integer("o_groups", 1);
  a.output_gate = map.boolean("attention_output_gate", false);
  a.sinks = map.boolean("attention_sinks", false);
  map.finish();
}

constexpr std::array kMixers{"none", "gated_delta_net", "mamba2", "lightning", "kimi_delta", "short_conv"};

void read_linear(YamlMap map, LinearMixerSpec& l) {
  const std::vector<std::string> words(kMixers.begin() + 1, kMixers.end());
  l.kind = *enumerator_of<LinearMixerSpec::Kind>(map.choice("kind", words, "gated_delta_net"), kMixers);
  l.layers = read_pattern(map, "layers", false);
  l.key_heads = map.integer("key_heads", 1);
  l.value_heads = map.integer("value_heads", 1);
  l.key_head_dim = map.integer("key_head_dim", 1);
  l.value_head_dim = map.integer("value_head_dim", 1);
  l.conv_kernel = map.integer_or("conv_kernel", 4, 1);
  l.chunk = map.integer("chunk", 1);
  map.finish();
}

void read_router(YamlMap& map, RouterSpec& r) {
  r.score = map.enumerator("moe_score_function", std::array{"softmax", "sigmoid"}, RouterSpec::Score::softmax);
  r.normalize = map.boolean("moe_normalize_expert_weights", true);
  r.scale = map.number_or("moe_route_scale", r.scale, 0.0);
  r.groups = map.integer_or("moe_n_group", 1, 1);
  r.top_groups = map.integer_or("moe_topk_group", r.groups, 1);
  r.group_score = map.enumerator("moe_group_worth", std::array{"two_best", "best"}, GroupScore::two_best);
  r.aux_loss_weight = map.number_or("moe_loss_weight", r.aux_loss_weight, 0.0);
  r.aux_of_microbatch = map.choice("moe_loss_over", {"sequence", "microbatch"}, "sequence") == "microbatch";
  r.z_loss_weight = map.number_or("moe_zloss_weight", r.z_loss_weight, 0.0);
  r.bias_update_rate = map.number_or("moe_bias_update_rate", 0, 0.0);
  r.capacity_factor = map.number_or("moe_capacity_factor", 0, 0.0, 1000.0);
  r.padded = map.boolean("moe_pad_expert_input_to_capacity", false);
  r.forced = map.enumerator("expert_assignment", std::array{"router", "balanced", "zipf"}, RouterSpec::Forced::none);
  r.zipf_exponent = map.number_or("zipf_exponent", r.zipf_exponent, 0.0);
}

constexpr std::array kNormPlacements{"before", "after", "both"};
constexpr std::array kActivations{"swiglu", "clamped_swiglu", "gelu", "gelu_tanh", "geglu", "geglu_tanh"};

/// mptmlp allows activations without a gate, mptglu those with one, experts all.
void read_activation(YamlMap& map, const std::string& kind, ModelSpec& m) {
  std::vector<std::string> allowed;
  for (const char* word : kActivations) {
    m.activation = *enumerator_of<Activation>(word, kActivations);
    if (kind == "mb_dmoe" || m.gated() == (kind == "mptglu")) allowed.push_back(word);
  }
  m.activation = *enumerator_of<Activation>(map.choice("activation", allowed, allowed.front()), kActivations);
}

void read_ffn(YamlMap map, ModelSpec& m) {
  const std::string kind =
      map.choice("ffn_type", {"mb_dmoe", "mptglu", "mptmlp"}, map.has("moe_num_experts") ? "mb_dmoe" : "mptglu");
  read_activation(map, kind, m);
  m.ffn_layers = read_pattern(map, "ffn_layers", false);
  m.ffn = map.integer("ffn_hidden_size", 1);
  m.ffn_bias = map.boolean("ffn_bias", false);
  if (kind == "mb_dmoe") {
    m.experts = map.integer("moe_num_experts", 1);
    m.top_k = map.integer("moe_top_k", 1);
    m.dense_layers = map.integer_or("first_k_dense", 0, 0);
    m.moe_pattern = read_pattern(map, "moe_layer_freq", true);
    m.dense_ffn = map.integer_or("dense_ffn_hidden_size", 0, 0);
    m.shared_ffn = map.integer_or("shared_expert_hidden_size", 0, 0);
    m.moe_latent = map.integer_or("moe_latent_size", 0, 0);
    read_router(map, m.router);
  }
  map.finish();
}

}  // namespace

ModelSpec model_from_yaml(YamlMap& map) {
  ModelSpec m;
  m.name = map.text("name");
  m.layers = map.integer("n_layers", 1, limits::kLayers);
  m.d_model = map.integer("d_model", 1);
  m.heads = map.integer("n_heads", 1);
  m.vocab = map.integer("vocab_size", 2);
  m.source = map.text("source", map.file().string());
  m.norm = map.enumerator("norm_type", std::array{"rmsnorm", "layernorm"}, Norm::rmsnorm);
  m.norm_placement = map.enumerator("norm_placement", kNormPlacements, NormPlacement::before);
  m.norm_bias = map.boolean("norm_bias", false);
  m.norm_eps = map.number_or("norm_eps", m.norm_eps, 0.0, 1.0);
  m.tied = map.boolean("tie_word_embeddings", false);
  // LLM Foundry's two keys; without learned positions max_seq_len has no effect.
  const std::int64_t longest = map.integer_or("max_seq_len", 0, 1);
  if (map.boolean("learned_pos_emb", false)) {
    if (longest == 0) map.fail("max_seq_len", "found none with learned_pos_emb, needs the longest sequence in tokens");
    m.learned_positions = longest;
  }
  m.mtp_layers = map.integer_or("mtp_num_layers", 0, 0);
  m.mtp_loss_weight = map.number_or("mtp_loss_scaling_factor", m.mtp_loss_weight, 0.0);
  m.simulated_only = map.texts("simulated_only");
  m.approximations = map.texts("approximations");
  m.kv_heads = m.heads;
  m.head_dim = m.d_model / m.heads;
  if (map.has("attn_config")) read_attention(map.map("attn_config"), m);
  if (map.has("linear_config")) read_linear(map.map("linear_config"), m.linear);
  read_ffn(map.map("ffn_config"), m);
  m.check(map.where("name"));
  return m;
}

void model_to_yaml(const ModelSpec& m, YAML::Emitter& out, const LoraSpec* lora) {
  const ModelSpec usual;
  const auto key = [&out](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  // The fewest digits that read back to the same number.
  const auto number = [&key](const char* name, double value) { key(name) << fmt::format("{}", value); };
  const auto beyond = [&number](const char* name, double value, double fallback) {
    if (value != fallback) number(name, value);
  };
  const auto whole = [&key](const char* name, std::int64_t value, std::int64_t fallback) {
    if (value != fallback) key(name) << value;
  };
  const auto flag = [&key](const char* name, bool value) {
    if (value) key(name) << true;
  };
  const auto pattern = [&](const char* name, const LayerPattern& layers) {
    if (layers.repeats.empty()) return;
    key(name) << YAML::Flow << YAML::BeginSeq;
    for (const bool layer : layers.repeats) out << (layer ? 1 : 0);
    out << YAML::EndSeq;
  };
  out << YAML::BeginMap;
  key("name") << m.name;
  key("n_layers") << m.layers;
  key("d_model") << m.d_model;
  key("n_heads") << m.heads;
  key("vocab_size") << m.vocab;
  if (m.norm == Norm::layernorm) key("norm_type") << "layernorm";
  if (m.norm_placement != NormPlacement::before) key("norm_placement") << word_for(m.norm_placement, kNormPlacements);
  flag("norm_bias", m.norm_bias);
  number("norm_eps", m.norm_eps);
  flag("tie_word_embeddings", m.tied);
  flag("learned_pos_emb", m.learned_positions > 0);
  whole("max_seq_len", m.learned_positions, 0);
  whole("mtp_num_layers", m.mtp_layers, 0);
  beyond("mtp_loss_scaling_factor", m.mtp_loss_weight, usual.mtp_loss_weight);
  if (!m.simulated_only.empty()) key("simulated_only") << YAML::Flow << m.simulated_only;
  if (!m.approximations.empty()) key("approximations") << m.approximations;

  const AttentionSpec& a = m.attention;
  key("attn_config") << YAML::BeginMap;
  key("kv_n_heads") << m.kv_heads;
  if (a.mla.on()) {
    key("kv_lora_rank") << a.mla.kv_lora_rank;
    whole("q_lora_rank", a.mla.q_lora_rank, 0);
    key("qk_nope_head_dim") << a.mla.qk_nope_head_dim;
    key("qk_rope_head_dim") << a.mla.qk_rope_head_dim;
    key("v_head_dim") << a.mla.v_head_dim;
  } else {
    key("head_dim") << m.head_dim;
    whole("q_lora_rank", a.mla.q_lora_rank, 0);
  }
  flag("qk_ln", a.qk_norm == QkNorm::full);
  flag("qk_gn", a.qk_norm == QkNorm::head);
  if (a.qk_layernorm) key("qk_norm_type") << "layernorm";
  beyond("clip_qkv", a.clip_qkv, 0);
  flag("alibi", a.alibi);
  number("rope_theta", a.rope_theta);
  if (a.rope_scaling.on()) key("rope_scaling"), rope_scaling_to_yaml(a.rope_scaling, out);
  if (a.bias != Bias::none) key("attention_bias") << (a.bias == Bias::all ? "all" : "qkv");
  flag("parallel_attn", a.parallel != Parallel::none);
  whole("num_ln_in_parallel_attn", a.parallel == Parallel::two_norms ? 2 : 1, 1);
  whole("sliding_window", a.window, 0);
  whole("attention_chunk_size", a.chunk, 0);
  pattern("sliding_window_layers", a.local);
  if (a.indexer.on()) {
    key("index_topk") << a.indexer.top_keys;
    key("index_n_heads") << a.indexer.heads;
    key("index_head_dim") << a.indexer.head_dim;
  }
  flag("shared_kv", a.shared_kv);
  if (a.out_rank > 0) key("o_lora_rank") << a.out_rank, key("o_groups") << a.out_groups;
  flag("attention_output_gate", a.output_gate);
  flag("attention_sinks", a.sinks);
  out << YAML::EndMap;

  if (const LinearMixerSpec& l = m.linear; l.on()) {
    key("linear_config") << YAML::BeginMap;
    key("kind") << word_for(l.kind, kMixers);
    pattern("layers", l.layers);
    key("key_heads") << l.key_heads;
    key("value_heads") << l.value_heads;
    key("key_head_dim") << l.key_head_dim;
    key("value_head_dim") << l.value_head_dim;
    whole("conv_kernel", l.conv_kernel, 4);
    key("chunk") << l.chunk;
    out << YAML::EndMap;
  }

  key("ffn_config") << YAML::BeginMap;
  if (m.experts == 0) key("ffn_type") << (m.gated() ? "mptglu" : "mptmlp");
  if (m.activation != Activation::swiglu && (m.activation != Activation::gelu || m.experts > 0))
    key("activation") << word_for(m.activation, kActivations);
  pattern("ffn_layers", m.ffn_layers);
  key("ffn_hidden_size") << m.ffn;
  flag("ffn_bias", m.ffn_bias);
  if (m.experts > 0) {
    const RouterSpec &r = m.router, &plain = usual.router;
    key("moe_num_experts") << m.experts;
    key("moe_top_k") << m.top_k;
    whole("first_k_dense", m.dense_layers, 0);
    pattern("moe_layer_freq", m.moe_pattern);
    whole("dense_ffn_hidden_size", m.dense_ffn, 0);
    whole("shared_expert_hidden_size", m.shared_ffn, 0);
    whole("moe_latent_size", m.moe_latent, 0);
    if (r.score == RouterSpec::Score::sigmoid) key("moe_score_function") << "sigmoid";
    key("moe_normalize_expert_weights") << r.normalize;
    beyond("moe_route_scale", r.scale, plain.scale);
    whole("moe_n_group", r.groups, 1);
    whole("moe_topk_group", r.top_groups, r.groups);
    if (r.group_score == GroupScore::best) key("moe_group_worth") << "best";
    number("moe_loss_weight", r.aux_loss_weight);
    if (r.aux_of_microbatch) key("moe_loss_over") << "microbatch";
    number("moe_zloss_weight", r.z_loss_weight);
    beyond("moe_bias_update_rate", r.bias_update_rate, 0);
    beyond("moe_capacity_factor", r.capacity_factor, 0);
    if (r.padded) key("moe_pad_expert_input_to_capacity") << true;
    if (r.forced != RouterSpec::Forced::none)
      key("expert_assignment") << (r.forced == RouterSpec::Forced::balanced ? "balanced" : "zipf");
    beyond("zipf_exponent", r.zipf_exponent, plain.zipf_exponent);
  }
  out << YAML::EndMap;
  if (lora) write_peft_config(out, *lora);
  out << YAML::EndMap;
}

}  // namespace wt
