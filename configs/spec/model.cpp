#include "configs/spec/model.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "configs/spec/error.hpp"
#include "configs/spec/find.hpp"
#include "configs/spec/yaml.hpp"

namespace wt {

std::int64_t ModelSpec::attention_parameters() const {
  return d_model * head_dim * (heads + 2 * kv_heads) + heads * head_dim * d_model;
}
std::int64_t ModelSpec::dense_parameters() const { return attention_parameters() + 2 * d_model + d_model * experts; }
std::int64_t ModelSpec::expert_parameters() const { return 3 * d_model * ffn; }
std::int64_t ModelSpec::embedding_parameters() const { return vocab * d_model; }
std::int64_t ModelSpec::head_parameters() const { return vocab * d_model + d_model; }
std::int64_t ModelSpec::total_parameters() const {
  return layers * (dense_parameters() + experts * expert_parameters()) + embedding_parameters() + head_parameters();
}
std::int64_t ModelSpec::active_parameters() const {
  return total_parameters() - layers * (experts - top_k) * expert_parameters();
}

double ModelSpec::flops_per_token(std::int64_t seq) const {
  const double weights = static_cast<double>(layers) * static_cast<double>(attention_parameters() + d_model * experts +
                                                                         top_k * expert_parameters()) +
                         static_cast<double>(vocab * d_model);
  return 6.0 * weights + 6.0 * static_cast<double>(layers * heads * head_dim * seq);
}

void ModelSpec::check(const std::string& where) const {
  const auto positive = [&](const char* key, std::int64_t value) {
    if (value < 1) throw_error(Code::usage, "{}: {}: found {}, needs a whole number >= 1", where, key, value);
  };
  positive("n_layers", layers), positive("d_model", d_model), positive("n_heads", heads);
  positive("kv_n_heads", kv_heads), positive("head_dim", head_dim), positive("ffn_hidden_size", ffn);
  positive("moe_num_experts", experts), positive("moe_top_k", top_k), positive("vocab_size", vocab);
  if (heads % kv_heads != 0)
    throw_error(Code::usage, "{}: kv_n_heads: found {}, needs a divisor of n_heads = {}", where, kv_heads, heads);
  if (head_dim % 2 != 0)
    throw_error(Code::usage, "{}: head_dim: found {}, needs an even number (rotary pairs)", where, head_dim);
  if (top_k > experts)
    throw_error(Code::usage, "{}: moe_top_k: found {}, needs at most moe_num_experts = {}", where, top_k, experts);
}

ModelSpec model_from_yaml(YamlMap& map) {
  ModelSpec m;
  m.name = map.text("name");
  m.layers = map.integer("n_layers", 1);
  m.d_model = map.integer("d_model", 1);
  m.heads = map.integer("n_heads", 1);
  m.vocab = map.integer("vocab_size", 2);
  m.source = map.text("source", map.file().string());
  m.norm_eps = map.number_or("norm_eps", m.norm_eps, 0.0, 1.0);
  if (map.has("attn_config")) {
    YamlMap attention = map.map("attn_config");
    m.kv_heads = attention.integer_or("kv_n_heads", m.heads, 1);
    m.head_dim = attention.integer_or("head_dim", m.d_model / m.heads, 1);
    m.rope_theta = attention.number_or("rope_theta", m.rope_theta, 1.0);
    attention.finish();
  } else {
    m.kv_heads = m.heads;
    m.head_dim = m.d_model / m.heads;
  }
  YamlMap ffn = map.map("ffn_config");
  m.ffn = ffn.integer("ffn_hidden_size", 1);
  m.experts = ffn.integer("moe_num_experts", 1);
  m.top_k = ffn.integer("moe_top_k", 1);
  m.normalize_top_k = ffn.boolean("moe_normalize_expert_weights", true);
  m.aux_loss_weight = ffn.number_or("moe_loss_weight", m.aux_loss_weight, 0.0);
  m.z_loss_weight = ffn.number_or("moe_zloss_weight", m.z_loss_weight, 0.0);
  ffn.finish();
  m.check(map.where("name"));
  return m;
}

ModelSpec model_from_hugging_face(const std::filesystem::path& file) {
  using nlohmann::json;
  std::ifstream in(file);
  if (!in) throw_error(Code::usage, "{}: cannot be read; needs a Hugging Face config.json", file.string());
  const json document = json::parse(in, nullptr, false);
  if (!document.is_object()) throw_error(Code::usage, "{}: not a JSON object; needs a Hugging Face config.json", file.string());

  const auto integer = [&](const json& from, const char* key) -> std::int64_t {
    if (!from.contains(key) || !from[key].is_number_integer())
      throw_error(Code::usage, "{}: {}: found {}, needs a whole number", file.string(), key,
                  from.contains(key) ? from[key].dump() : "nothing");
    return from[key].get<std::int64_t>();
  };
  const auto number_or = [](const json& from, const char* key, double fallback) {
    return from.contains(key) && from[key].is_number() ? from[key].get<double>() : fallback;
  };
  const auto integer_or = [&](const json& from, const char* key, std::int64_t fallback) {
    return from.contains(key) && !from[key].is_null() ? integer(from, key) : fallback;
  };

  ModelSpec m;
  m.source = file.string();
  const std::string type = document.value("model_type", "");
  m.name = document.value("_name_or_path", "").empty() ? type : document["_name_or_path"].get<std::string>();
  m.vocab = integer(document, "vocab_size");
  if (type == "dbrx") {
    const json attention = document.value("attn_config", json::object()), ffn = document.value("ffn_config", json::object());
    m.layers = integer(document, "n_layers");
    m.d_model = integer(document, "d_model");
    m.heads = integer(document, "n_heads");
    m.kv_heads = integer(attention, "kv_n_heads");
    m.rope_theta = number_or(attention, "rope_theta", m.rope_theta);
    m.ffn = integer(ffn, "ffn_hidden_size");
    m.experts = integer(ffn, "moe_num_experts");
    m.top_k = integer(ffn, "moe_top_k");
    m.aux_loss_weight = number_or(ffn, "moe_loss_weight", m.aux_loss_weight);
  } else if (type == "mixtral" || type == "olmoe" || type == "qwen3_moe") {
    m.layers = integer(document, "num_hidden_layers");
    m.d_model = integer(document, "hidden_size");
    m.heads = integer(document, "num_attention_heads");
    m.kv_heads = integer_or(document, "num_key_value_heads", m.heads);
    m.rope_theta = number_or(document, "rope_theta", m.rope_theta);
    m.norm_eps = number_or(document, "rms_norm_eps", m.norm_eps);
    m.ffn = integer(document, type == "qwen3_moe" ? "moe_intermediate_size" : "intermediate_size");
    m.experts = integer(document, type == "mixtral" ? "num_local_experts" : "num_experts");
    m.top_k = integer(document, "num_experts_per_tok");
    m.normalize_top_k = document.value("norm_topk_prob", type == "mixtral");
    m.aux_loss_weight = number_or(document, "router_aux_loss_coef", m.aux_loss_weight);
  } else {
    throw_error(Code::usage, "{}: model_type: found '{}', reads dbrx, mixtral, olmoe, qwen3_moe", file.string(), type);
  }
  m.head_dim = integer_or(document, "head_dim", m.heads > 0 ? m.d_model / m.heads : 0);
  m.check(file.string());
  return m;
}

ModelSpec read_model(const std::string& name_or_file) {
  const std::filesystem::path file = find_config("models", name_or_file);
  if (file.extension() == ".json") return model_from_hugging_face(file);
  YamlMap map = YamlMap::from_file(file);
  ModelSpec model = model_from_yaml(map);
  map.finish();
  return model;
}

}  // namespace wt
