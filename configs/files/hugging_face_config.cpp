#include "configs/files/hugging_face_config.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>

namespace wt {
namespace {

using nlohmann::json;

/// Reads one "rope_scaling". `model` is the whole config: it gives the original length where the map omits it.
RopeScaling read_rope_scaling(const HuggingFaceConfig& c, const HuggingFaceConfig& model, RopeScaling::Kind kind,
                              ModelSpec& m) {
  RopeScaling out;
  out.kind = kind;
  std::set<std::string> known{"rope_type",     "type",
                              "rope_theta",    "partial_rotary_factor",
                              "finetuned",     "original_max_position_embeddings",
                              "mrope_section", "mrope_interleaved"};  // equal positions in all sections of a text
  for_rope_fields(out.kind, [&](const char* key, auto member, bool required) {
    known.insert(key);
    auto& value = out.*member;
    using Value = std::remove_reference_t<decltype(value)>;
    if (!required && !c.has(key)) return;
    if constexpr (std::is_same_v<Value, bool>)
      value = c.flag(key, true);
    else if constexpr (std::is_same_v<Value, double>)
      value = c.number(key);
    else
      value = out.kind == RopeScaling::Kind::yarn && !c.has(key) ? model.integer("max_position_embeddings")
                                                                 : c.integer(key);
  });
  for (const auto& [key, value] : c.object.items())
    if (out.on() && !known.contains(key) && !value.is_null()) simulate_only(m, "rope_scaling." + key);
  return out;
}

/// The map itself; of maps by layer type (Gemma-3 in transformers 5) that of the layers that see everything.
HuggingFaceConfig rope_map(const HuggingFaceConfig& c, const char* key, ModelSpec& m) {
  c.must_be(key, !c.has(key) || c.object[key].is_object(), "an object or null");
  HuggingFaceConfig all = c.map(key);
  for (const char* layers : {"full_attention", "main", "sliding_attention"})
    if (all.object.contains(layers) && all.object[layers].is_object()) {
      if (all.object.size() > 1) simulate_only(m, "rotary positions by layer type");
      return all.map(layers);
    }
  return all;
}

/// Keys that scale activations or logits, with the value that changes nothing.
void read_multipliers(const HuggingFaceConfig& c, ModelSpec& m) {
  for (const char* key : {"embedding_multiplier", "logits_scaling", "residual_multiplier", "logit_scale", "scale_emb"})
    if (c.number_or(key, 1) != 1) simulate_only(m, key);
  for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping"})
    if (c.has(key)) simulate_only(m, key);
  const double dim = static_cast<double>(m.head_dim);
  if (c.number_or("query_pre_attn_scalar", dim) != dim) simulate_only(m, "query_pre_attn_scalar");
  if (std::abs(c.number_or("attention_multiplier", 1 / std::sqrt(dim)) * std::sqrt(dim) - 1) > 1e-6)
    simulate_only(m, "attention_multiplier");
}

}  // namespace

std::int64_t HuggingFaceConfig::any(const std::vector<const char*>& keys) const {
  for (const char* key : keys) {
    if (!has(key)) continue;
    if (!object[key].is_array()) return integer(key);
    const json& each = object[key];
    must_be(key,
            !each.empty() && each.front().is_number_integer() &&
                std::ranges::count(each, each.front()) == static_cast<std::ptrdiff_t>(each.size()),
            "a whole number, or a list with the same one for every layer");
    const json one{{key, each.front()}};
    return HuggingFaceConfig{one, file, in}.integer(key);
  }
  return integer(keys.front());
}

std::int64_t HuggingFaceConfig::any_or(const std::vector<const char*>& keys, std::int64_t fallback) const {
  return std::ranges::any_of(keys, [&](const char* key) { return has(key); }) ? any(keys) : fallback;
}

void simulate_only(ModelSpec& m, const std::string& feature) {
  if (std::ranges::find(m.simulated_only, feature) == m.simulated_only.end()) m.simulated_only.push_back(feature);
}

void read_rope(const HuggingFaceConfig& c, ModelSpec& m, double rotary) {
  AttentionSpec& a = m.attention;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const HuggingFaceConfig scaling = rope_map(c, key, m);
    const std::string kind =
        scaling.text("type", scaling.text("rope_type", "default"));  // the older key has priority, as in transformers
    RopeScaling::Kind known = RopeScaling::Kind::none;
    if (rope_kind_from_string(kind, known)) {
      if (known != RopeScaling::Kind::none) a.rope_scaling = read_rope_scaling(scaling, c, known, m);
    } else if (kind != "mrope") {  // a text has equal positions in all its sections
      simulate_only(m, "rope_scaling " + kind);
    }
    a.rope_theta = scaling.number_or("rope_theta", a.rope_theta);
    rotary = scaling.number_or("partial_rotary_factor", rotary);
  }
  a.rope_theta = c.number_or("rope_theta", a.rope_theta);
  rotary = c.number_or("partial_rotary_factor", rotary);
  if (c.has("rotary_dim") && m.head_dim > 0) rotary = c.number("rotary_dim") / static_cast<double>(m.head_dim);
  if (rotary != 1 && !a.mla.on()) simulate_only(m, "partial_rotary_factor");
}

void read_attention_bias(const HuggingFaceConfig& c, AttentionSpec& a) {
  if (c.flag("attention_bias", false)) a.bias = AttentionSpec::Bias::all;
}

void read_activation(const HuggingFaceConfig& c, const char* key, const std::string& usual, bool gated, ModelSpec& m) {
  static const std::set<std::string> kTanh{"gelu_pytorch_tanh", "gelu_new", "gelu_fast"},
      kOther{"relu", "relu2", "xielu"};
  const std::string word = c.text(key, usual);
  if (gated && (word == "silu" || word == "swish")) {
    m.activation = Activation::swiglu;
  } else if (word == "gelu") {
    m.activation = gated ? Activation::geglu : Activation::gelu;
  } else if (kTanh.contains(word)) {
    m.activation = gated ? Activation::geglu_tanh : Activation::gelu_tanh;
  } else {
    c.must_be(key, !gated && kOther.contains(word),
              gated ? "silu, gelu, gelu_pytorch_tanh" : "gelu, gelu_pytorch_tanh, relu, relu2, xielu", word);
    m.activation = Activation::gelu;  // the same sizes, and a time like GELU's
    simulate_only(m, word);
  }
}

void read_experts(const HuggingFaceConfig& c, ModelSpec& m) {
  m.experts = c.any({"n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"});
  m.top_k = c.any({"num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token"});
  m.ffn = c.any({"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"});
  m.shared_ffn =
      m.ffn * c.any_or({"n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"}, 0);
}

void read_dense_layers(const HuggingFaceConfig& c, std::int64_t usual, ModelSpec& m) {
  m.dense_layers = c.any_or({"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}, usual);
  if (c.has("mlp_layer_types")) {
    const json& types = c.object["mlp_layer_types"];
    c.must_be("mlp_layer_types", types.is_array() && static_cast<std::int64_t>(types.size()) >= m.layers,
              fmt::format("a word for each of the {} layers", m.layers).c_str());
    std::vector<bool> experts;
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(m.layers); ++layer) {
      c.must_be("mlp_layer_types", types[layer] == "dense" || types[layer] == "sparse", "dense, sparse",
                types[layer].dump());
      experts.push_back(types[layer] == "sparse");
    }
    const auto first = std::ranges::find(experts, true);
    m.dense_layers = first - experts.begin();
    if (std::find(first, experts.end(), false) != experts.end())
      m.dense_layers = 0, m.moe_pattern = LayerPattern::of(std::move(experts));
  }
  m.dense_ffn = m.dense_layers > 0 || !m.moe_pattern.repeats.empty()
                    ? c.any({"intermediate_size", "dense_intermediate_size", "ffn_hidden_size"})
                    : 0;
}

void read_sigmoid_router(const HuggingFaceConfig& c, RouterSpec& r) {
  r.score = RouterSpec::Score::sigmoid;
  r.normalize = c.flag("norm_topk_prob", true);
  r.scale = c.number_or("routed_scaling_factor", 1);
  r.groups = c.integer_or("n_group", 1);
  r.top_groups = c.integer_or("topk_group", 1);
  r.aux_loss_weight = 0;
  r.bias_update_rate = 0.001;
}

void read_layer_types(const HuggingFaceConfig& c, const std::string& local, ModelSpec& m) {
  if (!c.has("layer_types")) return;
  const json& types = c.object["layer_types"];
  c.must_be("layer_types", types.is_array() && static_cast<std::int64_t>(types.size()) == m.layers,
            fmt::format("a word for each of the {} layers", m.layers).c_str());
  std::vector<bool> layers;
  for (const json& type : types) {
    c.must_be("layer_types", type == local || type == "full_attention", (local + ", full_attention").c_str(),
              type.dump());
    layers.push_back(type == local);
  }
  if (std::ranges::find(layers, true) == layers.end()) {
    m.attention.window = m.attention.chunk = 0;
    layers.clear();
  }
  m.attention.local = LayerPattern::of(std::move(layers));
}

void read_alternating_windows(const HuggingFaceConfig& c, std::int64_t usual, std::int64_t every, ModelSpec& m) {
  const bool said = c.object.contains("sliding_window");
  m.attention.window = said ? c.integer_or("sliding_window", 0) : usual;
  if (m.attention.window <= 0) return;
  if (c.has("layer_types")) return read_layer_types(c, "sliding_attention", m);
  for (const char* key : {"sliding_window_pattern", "global_attn_every_n_layers"})
    if (c.has(key))
      every = c.object[key].is_string() ? static_cast<std::int64_t>(c.text(key, "").size()) : c.integer(key);
  c.must_be("sliding_window_pattern", every >= 1 && every <= limits::kLayers, "a whole number >= 1");
  std::vector<bool> layers;
  for (std::int64_t layer = 1; layer <= every; ++layer) layers.push_back(layer < every);
  if (every == 1) m.attention.window = 0;
  if (every > 1) m.attention.local = LayerPattern::of(std::move(layers));
}

void read_mixer_layers(const HuggingFaceConfig& c, const std::set<std::string>& words, std::int64_t every,
                       ModelSpec& m) {
  std::vector<bool> layers;
  if (c.has("layer_types") || every == 0) {
    const json& types = c.has("layer_types") ? c.object["layer_types"] : json();
    c.must_be("layer_types", types.is_array(), "a word for each layer");
    for (const json& type : types) {
      const bool mixer = type.is_string() && words.contains(type.get<std::string>());
      c.must_be("layer_types", mixer || type == "full_attention" || type == "attention",
                (*words.begin() + ", full_attention").c_str(), type.dump());
      layers.push_back(mixer);
    }
    c.must_be("layer_types", static_cast<std::int64_t>(layers.size()) == m.layers, "a word for each layer");
  } else {
    c.must_be("full_attention_interval", every >= 1 && every <= limits::kLayers, "a whole number >= 1");
    for (std::int64_t layer = 1; layer <= every; ++layer) layers.push_back(layer < every);
  }
  m.linear.set_layers(std::move(layers));
}

void read_sparse_step(const HuggingFaceConfig& c, const char* step_key, const char* dense_key, ModelSpec& m) {
  const std::int64_t step = c.integer_or(step_key, 1);
  c.must_be(step_key, step >= 1, "a whole number >= 1");
  std::vector<bool> layers;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) layers.push_back((layer + 1) % step == 0);
  if (dense_key && c.has(dense_key))
    for (const json& layer : c.object[dense_key]) {
      c.must_be(dense_key, layer.is_number_integer() && layer >= 0 && layer < m.layers, "numbers of layers",
                layer.dump());
      layers[layer.get<std::size_t>()] = false;
    }
  m.moe_pattern = LayerPattern::of(std::move(layers));
}

void read_llama_like(const HuggingFaceConfig& c, ModelSpec& m, const FamilyDefaults& family) {
  // In other families transformers ignores the key.
  static const std::set<std::string> kMlpBias{"llama",   "arcee",     "seed_oss", "granite",  "helium",
                                              "smollm3", "internlm3", "hy_v3",    "nemotron", "cwm"};
  const std::string type = c.text("model_type", "");
  m.layers = c.layers("num_hidden_layers");
  m.d_model = c.integer("hidden_size");
  m.heads = c.integer("num_attention_heads");
  m.kv_heads = c.integer_or("num_key_value_heads", m.heads);
  m.head_dim = c.integer_or("head_dim", m.heads > 0 ? m.d_model / m.heads : 0);
  m.norm_eps = c.number_or("rms_norm_eps", m.norm_eps);
  m.tied = c.flag("tie_word_embeddings", m.tied);
  read_rope(c, m, family.rotary);
  read_activation(c, family.activation_key, family.activation, family.gated, m);
  read_multipliers(c, m);
  m.ffn_bias = c.flag("mlp_bias", false);
  if (!kMlpBias.contains(type)) c.must_be("mlp_bias", !m.ffn_bias, "false");
  if (!type.starts_with("qwen")) c.must_be("use_sliding_window", !c.flag("use_sliding_window", false), "false");
}

void read_qwen_window(const HuggingFaceConfig& c, bool from_layer, ModelSpec& m) {
  if (!c.flag("use_sliding_window", false) || !c.has("sliding_window")) return;
  m.attention.window = c.integer("sliding_window");
  if (c.has("layer_types")) return read_layer_types(c, "sliding_attention", m);
  const std::int64_t first = from_layer ? c.integer_or("max_window_layers", 28) : 0;  // Qwen2Config's default
  if (first >= m.layers) m.attention.window = 0;
  if (first <= 0 || first >= m.layers) return;
  std::vector<bool> layers;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) layers.push_back(layer >= first);
  m.attention.local = LayerPattern::of(std::move(layers));
}

}  // namespace wt
