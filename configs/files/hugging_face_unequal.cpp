// Families whose layers have attention of unequal widths: one layer of the mean width stands for each.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/files/hugging_face_families.hpp"

namespace wt {
namespace {

using Config = HuggingFaceConfig;
using nlohmann::json;

/// The layers with windows among the m.layers first entries of a list: those equal to `local`.
std::vector<bool> windowed_layers(const Config& c, const char* key, const json& local, const ModelSpec& m) {
  const json types = c.has(key) ? c.object[key] : json();
  c.must_be(key, types.is_array() && static_cast<std::int64_t>(types.size()) >= m.layers,
            fmt::format("an entry for each of the {} layers", m.layers).c_str());
  std::vector<bool> out;
  for (std::int64_t layer = 0; layer < m.layers; ++layer)
    out.push_back(types[static_cast<std::size_t>(layer)] == local);
  return out;
}

/// Sets the windows; returns the share of layers that have one.
double set_windows(std::vector<bool> layers, ModelSpec& m) {
  const auto count = static_cast<double>(std::ranges::count(layers, true));
  if (count == 0) m.attention.window = 0;
  if (m.attention.window > 0) m.attention.local = LayerPattern::of(std::move(layers));
  return count / static_cast<double>(std::max<std::int64_t>(1, m.layers));
}

/// The number of key heads nearest to `heads` that divides the query heads.
std::int64_t nearest_divisor(double heads, std::int64_t queries) {
  std::int64_t best = 1;
  for (std::int64_t each = 1; each <= std::min(queries, limits::kHeads); ++each)
    if (queries % each == 0 &&
        std::abs(static_cast<double>(each) - heads) < std::abs(static_cast<double>(best) - heads))
      best = each;
  return best;
}

void approximate_heads(ModelSpec& m) {
  m.approximations.push_back(
      "layers with and without windows have heads of other numbers or widths; each has the mean");
}

/// MiMo-V2-Flash: keys wider than values, which together give the same products as heads of the mean width, and more
/// heads of keys in layers of windows, which most layers are.
void read_mimo_v2(const Config& c, ModelSpec& m) {
  read_llama_like(c, m, {.rotary = 0.334});
  m.head_dim = (c.integer_or("head_dim", 192) + c.integer_or("v_head_dim", 128)) / 4 * 2;
  m.kv_heads = std::max(m.kv_heads, c.integer_or("swa_num_key_value_heads", m.kv_heads));
  m.attention.window = c.any_or({"sliding_window", "sliding_window_size"}, 128);
  set_windows(c.has("hybrid_layer_pattern") ? windowed_layers(c, "hybrid_layer_pattern", 1, m)
                                            : windowed_layers(c, "layer_types", "sliding_attention", m),
              m);
  read_experts(c, m);
  if (c.has("moe_layer_freq") && c.object["moe_layer_freq"].is_array()) {
    const std::vector<bool> experts = windowed_layers(c, "moe_layer_freq", 1, m);
    m.dense_layers = std::ranges::find(experts, true) - experts.begin();
    m.dense_ffn = m.dense_layers > 0 ? c.integer("intermediate_size") : 0;
    c.must_be("moe_layer_freq", std::ranges::count(experts, false) == m.dense_layers, "zeros at the start alone");
  } else {
    read_dense_layers(c, 1, m);
  }
  read_sigmoid_router(c, m.router);
  simulate_only(m, "attention_value_scale");
  approximate_heads(m);
}

/// Step-3.5 and 3.7: more query heads in layers of windows, a gate a head, experts from the fourth layer on.
void read_step3p5(const Config& whole, ModelSpec& m) {
  json with = whole.object;
  if (whole.has("num_attention_groups")) with["num_key_value_heads"] = with["num_attention_groups"];
  for (const char* key : {"rope_theta", "partial_rotary_factors"})  // one a layer
    if (whole.has(key) && with[key].is_array()) with.erase(key);
  const Config c{with, whole.file, whole.in, whole.asked};
  read_llama_like(c, m);
  m.attention.qk_norm = AttentionSpec::QkNorm::head;
  m.attention.window = c.integer_or("sliding_window", 0);
  const double share =
      c.has("layer_types") ? set_windows(windowed_layers(c, "layer_types", "sliding_attention", m), m) : 0;
  const std::int64_t windowed =
      c.map("attention_other_setting")
          .integer_or("num_attention_heads", c.integer_or("num_sliding_attention_heads", m.heads));
  const double mean = share * static_cast<double>(windowed) + (1 - share) * static_cast<double>(m.heads);
  const double groups = static_cast<double>(std::max<std::int64_t>(1, m.kv_heads));
  m.heads = std::llround(mean / groups) * std::max<std::int64_t>(1, m.kv_heads);
  m.experts = c.any({"moe_num_experts", "n_routed_experts", "num_local_experts"});
  m.top_k = c.any({"moe_top_k", "num_experts_per_tok"});
  m.ffn = c.integer("moe_intermediate_size");
  m.shared_ffn = c.any_or({"share_expert_dim", "share_expert_dims"}, m.ffn);
  read_dense_layers(c, 3, m);
  read_sigmoid_router(c, m.router);
  m.router.scale = c.number_or("moe_router_scaling_factor", 1);
  for (const char* feature : {"partial_rotary_factor", "gate of each head", "swiglu_limits"}) simulate_only(m, feature);
  if (c.integer_or("num_nextn_predict_layers", 0) > 0)
    m.approximations.push_back("modules of multi-token prediction are left out: their attention differs");
  approximate_heads(m);
}

/// Gemma-4 without embeddings of every layer: wider heads, and keys that are the values, in the layers that see
/// everything; experts beside an FFN.
void read_gemma4(const Config& c, ModelSpec& m) {
  c.must_be("hidden_size_per_layer_input", c.integer_or("hidden_size_per_layer_input", 256) == 0,
            "0: embeddings of every layer are not modelled");
  c.must_be("num_kv_shared_layers", c.integer_or("num_kv_shared_layers", 0) == 0,
            "0: keys and values shared between layers are not modelled");
  m.norm_eps = 1e-6, m.tied = true, m.attention.rope_theta = 1e6;
  read_llama_like(c, m, {.activation_key = "hidden_activation", .activation = "gelu_pytorch_tanh"});
  m.norm_placement = NormPlacement::both;
  m.attention.qk_norm = AttentionSpec::QkNorm::head;
  m.attention.window = c.integer_or("sliding_window", 512);
  double share = 5.0 / 6;
  if (c.has("layer_types"))
    share = set_windows(windowed_layers(c, "layer_types", "sliding_attention", m), m);
  else
    m.attention.local.repeats = {true, true, true, true, true, false};
  const auto mean = [&](double windowed, double full) { return share * windowed + (1 - share) * full; };
  const auto local = static_cast<double>(m.head_dim),
             global = static_cast<double>(c.integer_or("global_head_dim", 512));
  const bool shared = c.flag("attention_k_eq_v", false);
  const auto kv = static_cast<double>(m.kv_heads),
             global_kv =
                 static_cast<double>(shared ? c.integer_or("num_global_key_value_heads", m.kv_heads) : m.kv_heads);
  m.head_dim = 2 * std::llround(mean(local, global) / 2);
  const double keys = mean(kv * local, global_kv * global * (shared ? 0.5 : 1));
  m.kv_heads = nearest_divisor(keys / static_cast<double>(std::max<std::int64_t>(1, m.head_dim)), m.heads);
  m.ffn = c.integer("intermediate_size");
  for (const char* feature : {"embedding_scale", "rotary positions by layer type", "layer_scalar"})
    simulate_only(m, feature);
  approximate_heads(m);
  if (!c.flag("enable_moe_block", false)) return;
  m.shared_ffn = m.ffn;
  m.experts = c.integer("num_experts");
  m.top_k = c.integer("top_k_experts");
  m.ffn = c.integer("moe_intermediate_size");
}

}  // namespace

const Families& unequal_families() {
  static const Families kFamilies{{"gemma4_text", read_gemma4},
                                  {"mimo_v2_flash", read_mimo_v2},
                                  {"step3p5", read_step3p5},
                                  {"step3p7_text", read_step3p5}};
  return kFamilies;
}

}  // namespace wt
