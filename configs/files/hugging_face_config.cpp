#include "configs/files/hugging_face_config.hpp"

#include <algorithm>
#include <set>
#include <type_traits>

namespace wt {
namespace {

/// Reads one "rope_scaling". `model` is the whole config: it gives the original length where the map omits it.
RopeScaling read_rope_scaling(const HuggingFaceConfig& c, const HuggingFaceConfig& model, const std::string& word) {
  RopeScaling out;
  c.must_be("rope_type", rope_kind_from_string(word, out.kind), kRopeKinds, word);
  std::set<std::string> known{
      "rope_type", "type", "rope_theta", "partial_rotary_factor", "finetuned", "original_max_position_embeddings"};
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
    if (out.on() && !known.contains(key))
      throw_usage("{}: {}{}: found {}, which is not read for {}; such a model is not supported", c.file, c.in, key,
                  value.dump(), word);
  return out;
}

}  // namespace

void read_rope(const HuggingFaceConfig& c, ModelSpec& m) {
  AttentionSpec& a = m.attention;
  bool partial = false;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    c.must_be(key, !c.has(key) || c.object[key].is_object(), "an object or null");
    const HuggingFaceConfig scaling = c.map(key);
    const std::string kind =
        scaling.text("type", scaling.text("rope_type", "default"));  // the older key has priority, as in transformers
    if (kind != "default") a.rope_scaling = read_rope_scaling(scaling, c, kind);
    a.rope_theta = scaling.number_or("rope_theta", a.rope_theta);
    partial = partial || scaling.number_or("partial_rotary_factor", 1) != 1;
  }
  a.rope_theta = c.number_or("rope_theta", a.rope_theta);
  if (partial || c.number_or("partial_rotary_factor", 1) != 1) m.simulated_only.push_back("partial_rotary_factor");
}

void read_attention_bias(const HuggingFaceConfig& c, AttentionSpec& a) {
  if (c.flag("attention_bias", false)) a.bias = AttentionSpec::Bias::all;
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
  const nlohmann::json& types = c.object["layer_types"];
  c.must_be("layer_types", types.is_array() && static_cast<std::int64_t>(types.size()) == m.layers,
            fmt::format("a word for each of the {} layers", m.layers).c_str());
  std::vector<bool> layers;
  for (const nlohmann::json& type : types) {
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

void read_sparse_step(const HuggingFaceConfig& c, const char* step_key, const char* dense_key, ModelSpec& m) {
  const std::int64_t step = c.integer_or(step_key, 1);
  c.must_be(step_key, step >= 1, "a whole number >= 1");
  std::vector<bool> layers;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) layers.push_back((layer + 1) % step == 0);
  if (dense_key && c.has(dense_key))
    for (const nlohmann::json& layer : c.object[dense_key]) {
      c.must_be(dense_key, layer.is_number_integer() && layer >= 0 && layer < m.layers, "numbers of layers",
                layer.dump());
      layers[layer.get<std::size_t>()] = false;
    }
  m.moe_pattern = LayerPattern::of(std::move(layers));
}

void read_llama_like(const HuggingFaceConfig& c, ModelSpec& m) {
  m.layers = c.layers("num_hidden_layers");
  m.d_model = c.integer("hidden_size");
  m.heads = c.integer("num_attention_heads");
  m.kv_heads = c.integer_or("num_key_value_heads", m.heads);
  m.head_dim = c.integer_or("head_dim", m.heads > 0 ? m.d_model / m.heads : 0);
  m.norm_eps = c.number_or("rms_norm_eps", m.norm_eps);
  m.tied = c.flag("tie_word_embeddings", false);
  read_rope(c, m);
  c.must_be("hidden_act", c.text("hidden_act", "silu") == "silu", "silu");
  const std::string type = c.text("model_type", "");
  if (type != "llama") c.must_be("mlp_bias", !c.flag("mlp_bias", false), "false");
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
