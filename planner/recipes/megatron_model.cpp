// The shape of a model as fields of Megatron-Core's TransformerConfig and MLATransformerConfig.
#include <algorithm>

#include "configs/base/error.hpp"
#include "planner/recipes/megatron.hpp"

namespace wt {
namespace {

const std::vector<RecipeRow> kShapeRows{{"num_layers", +[](RunSpec& r) { return &r.model.layers; }, 1},
                                        {"hidden_size", +[](RunSpec& r) { return &r.model.d_model; }, 1},
                                        {"num_attention_heads", +[](RunSpec& r) { return &r.model.heads; }, 1},
                                        {"layernorm_epsilon", +[](RunSpec& r) { return &r.model.norm_eps; }}};

const std::vector<RecipeRow> kLatentRows{
    {"kv_lora_rank", +[](RunSpec& r) { return &r.model.attention.mla.kv_lora_rank; }, 1},
    {"qk_head_dim", +[](RunSpec& r) { return &r.model.attention.mla.qk_nope_head_dim; }, 1},
    {"qk_pos_emb_head_dim", +[](RunSpec& r) { return &r.model.attention.mla.qk_rope_head_dim; }, 1},
    {"v_head_dim", +[](RunSpec& r) { return &r.model.attention.mla.v_head_dim; }, 1}};

const std::vector<RecipeRow> kExpertRows{
    {"num_moe_experts", +[](RunSpec& r) { return &r.model.experts; }, 0},
    {"moe_router_topk", +[](RunSpec& r) { return &r.model.top_k; }, 1},
    {"moe_ffn_hidden_size", +[](RunSpec& r) { return &r.model.ffn; }, 1},
    {"moe_aux_loss_coeff", +[](RunSpec& r) { return &r.model.router.aux_loss_weight; }}};

void write_bias(const ModelSpec& m, MegatronKeys& keys) {
  keys.put_flag("add_bias_linear", m.ffn_bias && m.attention.bias != AttentionSpec::Bias::none);
  keys.put_flag("add_qkv_bias", m.attention.bias != AttentionSpec::Bias::none && !m.attention.mla.on());
}

void read_bias(ModelSpec& m, MegatronKeys& keys) {
  using Bias = AttentionSpec::Bias;
  if (!keys.flags() && !keys.has("add_bias_linear") && !keys.has("add_qkv_bias")) return;
  const bool everywhere = keys.flag("add_bias_linear", keys.flags());
  const bool qkv = keys.flag("add_qkv_bias", !keys.flags() && m.attention.bias != Bias::none);
  m.attention.bias = everywhere ? Bias::all : qkv ? Bias::qkv : Bias::none;
  m.ffn_bias = everywhere;
}

/// Rotary positions. Latent attention has them without yarn, unless the model has it.
void write_positions(const ModelSpec& m, MegatronKeys& keys) {
  const RopeScaling& scaling = m.attention.rope_scaling;
  const bool yarn = scaling.kind == RopeScaling::Kind::yarn && m.attention.mla.on();
  if (m.learned_positions > 0) return keys.put("position_embedding_type", "learned_absolute");
  keys.put("position_embedding_type", "rope");
  keys.put("rotary_base", static_cast<std::int64_t>(m.attention.rope_theta));
  if (m.attention.mla.on()) keys.put("rope_type", yarn ? "yarn" : "rope");
  if (yarn) {
    keys.put("rotary_scaling_factor", scaling.factor);
    keys.put("mscale", scaling.mscale);
    keys.put("mscale_all_dim", scaling.mscale_all_dim);
  }
  const bool llama = scaling.kind == RopeScaling::Kind::llama3;
  keys.put_flag("rope_scaling", llama);
  if (llama) keys.put("rope_scaling_factor", scaling.factor);
}

void read_positions(RecipeReading& reading, MegatronKeys& keys) {
  ModelSpec& m = reading.run.model;
  RopeScaling& scaling = m.attention.rope_scaling;
  const std::string kind = keys.text("position_embedding_type", keys.flags() ? "learned_absolute" : "rope");
  const std::int64_t positions = keys.integer("max_position_embeddings", m.learned_positions, 0);
  m.learned_positions = kind == "learned_absolute" ? positions : 0;
  if (kind == "learned_absolute" && positions == 0)
    keys.fail("max_position_embeddings", "found none, needs the number of learned positions; add it to the flags");
  if (kind != "rope" && m.learned_positions == 0)
    reading.assume("{}: found {}, taken as rope", keys.key("position_embedding_type"), kind);
  if (m.learned_positions > 0) return;
  m.attention.rope_theta =
      static_cast<double>(keys.integer("rotary_base", static_cast<std::int64_t>(m.attention.rope_theta), 1));
  constexpr std::int64_t kOldLength = 4096, kLlamaLength = 8192;
  const bool yarn = scaling.kind == RopeScaling::Kind::yarn, llama = scaling.kind == RopeScaling::Kind::llama3;
  const std::string type = keys.text("rope_type", keys.flags() || yarn ? "yarn" : "rope");
  if (keys.flag("rope_scaling", llama)) {  // factors 1, 4 and 8192 are fixed in Megatron-Core's rotary_pos_embedding.py
    scaling = {.kind = RopeScaling::Kind::llama3,
               .factor = keys.number("rope_scaling_factor", llama ? scaling.factor : 8)};
    scaling.original_max_position_embeddings = kLlamaLength;
    scaling.low_freq_factor = 1, scaling.high_freq_factor = 4;
  } else if (m.attention.mla.on() && type == "yarn") {
    const double usual = keys.flags() ? 1 : yarn ? scaling.factor : 40;  // default of MLATransformerConfig
    scaling = {.kind = RopeScaling::Kind::yarn, .factor = keys.number("rotary_scaling_factor", usual)};
    scaling.original_max_position_embeddings = kOldLength;
    scaling.mscale = keys.number("mscale", 1), scaling.mscale_all_dim = keys.number("mscale_all_dim", 0);
  } else if (llama || m.attention.mla.on()) {
    scaling = {};
  }
}

void write_attention(RecipeDraft& draft, MegatronKeys& keys) {
  const ModelSpec& m = draft.run.model;
  const AttentionSpec& a = m.attention;
  if (a.mla.on()) {
    keys.put_flag("multi_latent_attention", true);
    write_megatron_rows(kLatentRows, draft, keys);
    keys.put_if(a.mla.q_lora_rank > 0, "q_lora_rank", a.mla.q_lora_rank);
  } else {
    if (keys.flags()) keys.put_flag("group_query_attention", true);
    keys.put("num_query_groups", m.kv_heads);
    keys.put("kv_channels", m.head_dim);
  }
  // With latent attention it norms the latent vectors, as every model with one does.
  keys.put_flag("qk_layernorm", a.mla.on() || a.qk_norm != AttentionSpec::QkNorm::none);
  if (a.sinks || !keys.flags()) keys.put("softmax_type", a.sinks ? "learnable" : "vanilla");
  keys.put_flag("attention_output_gate", a.output_gate);
  keys.put_if(
      a.window > 0, "window_size",
      keys.flags() ? Settings::Value(fmt::format("{},0", a.window - 1)) : Settings::Value::array({a.window - 1, 0}));
  keys.put_if(
      a.window > 0, "window_attn_skip_freq",
      megatron_layer_list(m.layers, keys.flags(), [&](std::int64_t layer) { return m.local_attention(layer); }));
  write_positions(m, keys);
}

void read_window(RecipeReading& reading, MegatronKeys& keys) {
  ModelSpec& m = reading.run.model;
  if (keys.mentions("window_size") && !keys.has("window_size")) {
    m.attention.window = 0, m.attention.local = {};
    keys.value("window_attn_skip_freq");
  }
  if (!keys.has("window_size")) return;
  Settings::Value window = keys.value("window_size");
  if (window.is_string()) window = value_from_yaml("[" + window.get<std::string>() + "]");
  if (!window.is_array() || window.size() != 2 || !window[0].is_number_integer() || window[0] < 0)
    keys.fail("window_size", "found {}, needs two whole numbers as in 127,0", window.dump());
  m.attention.window = window[0].get<std::int64_t>() + 1;
  if (window[1] != 0) reading.assume("{}: found keys after the query, taken as 0", keys.key("window_size"));
  if (keys.has("window_attn_skip_freq"))
    m.attention.local = LayerPattern::of(
        read_megatron_layer_list(keys, "window_attn_skip_freq", m.layers,
                                 [](std::int64_t layer, std::int64_t n) { return (layer + 1) % n != 0; }));
}

void read_attention(RecipeReading& reading, MegatronKeys& keys) {
  ModelSpec& m = reading.run.model;
  AttentionSpec& a = m.attention;
  if (keys.flag("multi_latent_attention", a.mla.on())) {
    if (!a.mla.on())
      a.mla = {.kv_lora_rank = keys.flags() ? 32 : 512,
               .q_lora_rank = keys.flags() ? 0 : 512,
               .qk_nope_head_dim = 128,
               .qk_rope_head_dim = 64,
               .v_head_dim = 128};
    read_megatron_rows(kLatentRows, reading, keys);
    a.mla.q_lora_rank = keys.integer_or_none("q_lora_rank", a.mla.q_lora_rank);
    m.head_dim = a.mla.qk_nope_head_dim + a.mla.qk_rope_head_dim;
    m.kv_heads = m.heads;
  } else {
    const bool grouped = !keys.flags() || keys.flag("group_query_attention", false);
    m.kv_heads = grouped ? keys.integer("num_query_groups", m.kv_heads > 0 ? m.kv_heads : m.heads, 1) : m.heads;
    m.head_dim = keys.integer("kv_channels", m.head_dim > 0 ? m.head_dim : m.d_model / m.heads, 1);
  }
  if (keys.has("qk_layernorm") || keys.flags()) {
    const bool norms = keys.flag("qk_layernorm", false);
    a.qk_norm = norms && !a.mla.on() ? AttentionSpec::QkNorm::head : AttentionSpec::QkNorm::none;
    if (a.mla.on() && !norms)
      reading.assume("{}: found none, taken as set: our latent vectors are normed", keys.key("qk_layernorm"));
  }
  a.sinks = keys.text("softmax_type", a.sinks ? "learnable" : "vanilla") == "learnable";
  a.output_gate = keys.flag("attention_output_gate", a.output_gate);
  read_window(reading, keys);
  read_positions(reading, keys);
}

void write_router(RecipeDraft& draft, MegatronKeys& keys) {
  const ModelSpec& m = draft.run.model;
  const RouterSpec& r = m.router;
  write_megatron_rows(kExpertRows, draft, keys);
  keys.put("moe_layer_freq",
           megatron_layer_list(m.layers, keys.flags(), [&](std::int64_t layer) { return m.moe(layer); }));
  keys.put_if(m.shared_ffn > 0, "moe_shared_expert_intermediate_size", m.shared_ffn);
  keys.put("moe_router_load_balancing_type", r.aux_loss_weight > 0 ? "seq_aux_loss" : "none");
  keys.put("moe_router_score_function", r.score == RouterSpec::Score::sigmoid ? "sigmoid" : "softmax");
  keys.put_flag("moe_router_pre_softmax", r.score == RouterSpec::Score::softmax && (!r.normalize || m.top_k == 1));
  keys.put_if(r.scale != 1, "moe_router_topk_scaling_factor", r.scale);
  keys.put_if(r.groups > 1, "moe_router_num_groups", r.groups);
  keys.put_if(r.groups > 1, "moe_router_group_topk", r.top_groups);
  keys.put_if(r.z_loss_weight > 0, "moe_z_loss_coeff", r.z_loss_weight);
  keys.put_flag("moe_router_enable_expert_bias", r.bias_update_rate > 0);
  if (r.bias_update_rate > 0) keys.put("moe_router_bias_update_rate", r.bias_update_rate);
  keys.put_if(r.capacity_factor > 0, "moe_expert_capacity_factor", r.capacity_factor);
  if (r.padded) keys.put_flag("moe_pad_expert_input_to_capacity", true);
  keys.put_flag("moe_router_force_load_balancing", r.forced == RouterSpec::Forced::balanced);
}

void read_expert_layers(ModelSpec& m, MegatronKeys& keys) {
  if (!keys.has("moe_layer_freq")) return;
  const std::vector<bool> layers = read_megatron_layer_list(
      keys, "moe_layer_freq", m.layers, [](std::int64_t layer, std::int64_t n) { return layer % n == 0; });
  const auto first = std::ranges::find(layers, true);
  const bool rest = std::find(first, layers.end(), false) == layers.end();
  m.dense_layers = rest ? first - layers.begin() : 0;
  m.moe_pattern = rest ? LayerPattern{} : LayerPattern::of(layers);
}

void read_router(RecipeReading& reading, MegatronKeys& keys) {
  ModelSpec& m = reading.run.model;
  RouterSpec& r = m.router;
  if (keys.flags()) r.aux_loss_weight = 0, m.top_k = 2;
  read_megatron_rows(kExpertRows, reading, keys);
  read_expert_layers(m, keys);
  m.shared_ffn = keys.integer_or_none("moe_shared_expert_intermediate_size", m.shared_ffn);
  const std::string balance = keys.text("moe_router_load_balancing_type", "aux_loss");
  if (balance == "none") r.aux_loss_weight = 0;
  const bool sigmoid = keys.text("moe_router_score_function",
                                 r.score == RouterSpec::Score::sigmoid ? "sigmoid" : "softmax") == "sigmoid";
  r.score = sigmoid ? RouterSpec::Score::sigmoid : RouterSpec::Score::softmax;
  if (keys.has("moe_router_pre_softmax") || keys.flags())
    r.normalize = sigmoid || !keys.flag("moe_router_pre_softmax", false);
  if (keys.mentions("moe_router_topk_scaling_factor")) r.scale = keys.number("moe_router_topk_scaling_factor", 1);
  r.groups = std::max<std::int64_t>(1, keys.integer_or_none("moe_router_num_groups", r.groups));
  r.top_groups = r.groups > 1 ? keys.integer("moe_router_group_topk", r.top_groups, 1) : 1;
  keys.value("moe_router_group_topk");
  r.z_loss_weight = keys.number_or_none("moe_z_loss_coeff", keys.flags() ? 0 : r.z_loss_weight);
  const double rate = keys.number("moe_router_bias_update_rate", r.bias_update_rate > 0 ? r.bias_update_rate : 1e-3);
  r.bias_update_rate = keys.flag("moe_router_enable_expert_bias", r.bias_update_rate > 0) ? rate : 0;
  r.capacity_factor = keys.number_or_none("moe_expert_capacity_factor", r.capacity_factor);
  r.padded = keys.flag("moe_pad_expert_input_to_capacity", r.padded);
  if (keys.mentions("moe_router_force_load_balancing"))
    r.forced =
        keys.flag("moe_router_force_load_balancing", false) ? RouterSpec::Forced::balanced : RouterSpec::Forced::none;
}

void write_activation(const ModelSpec& m, MegatronKeys& keys) {
  const bool clamped = m.activation == Activation::clamped_swiglu;
  if (keys.flags()) {
    if (m.gated()) keys.put_flag(clamped ? "quick_geglu" : "swiglu", true);
  } else {
    keys.put("gated_linear_unit", m.gated());
  }
  if (clamped) keys.put("activation_func_clamp_value", 7.0), keys.put("glu_linear_offset", 1.0);
}

void read_activation(RecipeReading& reading, MegatronKeys& keys) {
  ModelSpec& m = reading.run.model;
  if (keys.has("activation_func_clamp_value")) {
    m.activation = Activation::clamped_swiglu;
    for (const char* said : {"activation_func_clamp_value", "glu_linear_offset", "quick_geglu", "gated_linear_unit"})
      keys.value(said);
  } else if (keys.flags()) {
    const bool quick = keys.flag("quick_geglu", false);
    m.activation = keys.flag("swiglu", false)        ? Activation::swiglu
                   : quick                           ? Activation::geglu
                   : keys.flag("openai_gelu", false) ? Activation::gelu_tanh
                                                     : Activation::gelu;
    if (quick) reading.assume("quick-geglu: found true, taken as GEGLU, which takes the same products");
    if (keys.flag("squared_relu", false))
      reading.assume("squared-relu: found true, taken as GELU, which takes the same products");
  } else if (keys.has("gated_linear_unit")) {
    m.activation = keys.flag("gated_linear_unit", true) ? Activation::swiglu : Activation::gelu;
  }
}

}  // namespace

ModelSpec megatron_default_model() {
  ModelSpec m;
  m.norm = Norm::layernorm, m.norm_bias = true, m.tied = true;
  m.activation = Activation::gelu;
  m.mtp_loss_weight = 0.1;
  return m;
}

void write_megatron_model(RecipeDraft& draft, MegatronKeys keys) {
  const ModelSpec& m = draft.run.model;
  if (m.linear.on() || !m.ffn_layers.repeats.empty())
    throw_usage(
        "model {}: found layers with linear mixers or without an FFN, needs softmax attention and an FFN in every "
        "layer to be said in Megatron-Core's fields; megatron-bridge has recipes of some such models",
        m.name);
  write_megatron_rows(kShapeRows, draft, keys);
  keys.put("ffn_hidden_size", m.dense_ffn > 0 ? m.dense_ffn : m.ffn);
  keys.put("normalization", m.norm == Norm::rmsnorm ? "RMSNorm" : "LayerNorm");
  write_bias(m, keys);
  keys.put_flag("share_embeddings_and_output_weights", m.tied);
  write_activation(m, keys);
  write_attention(draft, keys);
  if (m.experts > 0)
    write_router(draft, keys);
  else
    keys.put_if(false, "num_moe_experts", {});
  keys.put_if(m.mtp_layers > 0, "mtp_num_layers", m.mtp_layers);
  if (m.mtp_layers > 0) keys.put("mtp_loss_scaling_factor", m.mtp_loss_weight);
  keys.put("vocab_size", m.vocab);
  draft.why["model.norm_bias"] = "Megatron-Core's LayerNorm has a bias";
  draft.why["model.attn_config.clip_qkv"] = "Megatron-Core does not clamp q, k and v";
  draft.why["model.attn_config.alibi"] = "positions are rotary there";
  draft.why["model.attn_config.qk_ln"] = "Megatron-Core norms q and k a head at a time";
  draft.why["model"] = "Megatron-Core has no such field";
}

bool says_megatron_model(const MegatronKeys& keys) {
  for (const char* field :
       {"num_layers", "hidden_size", "num_attention_heads", "num_query_groups", "ffn_hidden_size", "num_moe_experts",
        "moe_ffn_hidden_size", "moe_router_topk", "moe_layer_freq", "moe_shared_expert_intermediate_size", "vocab_size",
        "mtp_num_layers", "moe_router_force_load_balancing", "moe_expert_capacity_factor", "moe_aux_loss_coeff"})
    if (keys.mentions(field)) return true;
  return false;
}

void read_megatron_model(RecipeReading& reading, MegatronKeys keys, const ModelSpec& base) {
  ModelSpec& m = reading.run.model;
  m = base;
  m.name = reading.run.name;
  read_megatron_rows(kShapeRows, reading, keys);
  if (m.layers < 1 || m.d_model < 1 || m.heads < 1)
    keys.fail("num_layers", "found no model's shape, needs layers, hidden size and heads; give --model NAME");
  if (keys.has("normalization") || keys.flags()) {
    m.norm = keys.text("normalization", "LayerNorm") == "RMSNorm" ? Norm::rmsnorm : Norm::layernorm;
    m.norm_bias = m.norm == Norm::layernorm;
  }
  read_bias(m, keys);
  m.tied = keys.flag("share_embeddings_and_output_weights", m.tied);
  read_activation(reading, keys);
  // Arguments.py, validate_args.
  const std::int64_t usual = m.activation == Activation::swiglu ? 4 * m.d_model * 2 / 3 / 64 * 64 : 4 * m.d_model;
  const std::int64_t dense = keys.integer("ffn_hidden_size", base.layers > 0 ? 0 : usual, 1);
  m.experts = keys.integer_or_none("num_moe_experts", m.experts);
  if ((m.experts == 0 || m.ffn == 0) && dense > 0) m.ffn = dense;
  if (m.experts == 0) m.top_k = m.dense_layers = m.dense_ffn = m.shared_ffn = 0, m.moe_pattern = {}, m.router = {};
  m.mtp_layers = keys.integer_or_none("mtp_num_layers", m.mtp_layers);
  if (m.mtp_layers > 0)
    m.mtp_loss_weight = keys.number("mtp_loss_scaling_factor", m.mtp_loss_weight);
  else
    m.mtp_loss_weight = ModelSpec().mtp_loss_weight;
  read_attention(reading, keys);
  if (m.attention.mla.on() && m.attention.bias == AttentionSpec::Bias::qkv)
    m.attention.bias = AttentionSpec::Bias::none;
  if (m.experts > 0) read_router(reading, keys);
  if (m.experts > 0 && dense > 0) m.dense_ffn = m.moe_layers() < m.blocks() ? dense : 0;
  m.vocab = keys.flags() ? megatron_vocabulary(reading, keys)
                         : keys.integer("vocab_size", reading.vocab > 0 ? reading.vocab : m.vocab, 2);
  if (m.vocab < 2)
    keys.fail("vocab_size", "found none, needs the vocabulary's size, which the tokenizer says; give --vocab N");
}

void need_same_shape(RecipeReading& reading, MegatronKeys keys) {
  if (!reading.model) return;
  const ModelSpec& m = *reading.model;
  const auto same = [&](const char* field, std::int64_t has) {
    const std::int64_t said = keys.integer(field, has);
    if (keys.has(field) && said != has)
      keys.fail(field,
                "found {}, and {} in the --model {}; needs one shape; leave --model out, and give what is missing "
                "with --vocab or --seq-len",
                said, has, m.name);
  };
  same("num_layers", m.layers);
  same("hidden_size", m.d_model);
  same("num_attention_heads", m.heads);
  if (keys.has("num_query_groups") && !m.attention.mla.on()) same("num_query_groups", m.kv_heads);
  const bool whole = keys.flags() && keys.has("num_layers");  // flags that leave experts out have none
  if (whole && !keys.has("num_moe_experts") && m.experts > 0)
    keys.fail("num_moe_experts", "found none, and {} in the --model {}; needs one shape; leave --model out", m.experts,
              m.name);
  same("num_moe_experts", m.experts);
  if (m.experts > 0) {
    same("moe_router_topk", m.top_k);
    same("moe_ffn_hidden_size", m.ffn);
  } else {
    same("ffn_hidden_size", m.ffn);
  }
}

}  // namespace wt
