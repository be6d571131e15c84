// A model from a Hugging Face config.json. What a family has only one value for is taken for granted; what our model
// cannot express is refused by name.
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "configs/spec/model.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/json_reader.hpp"

namespace wt {
namespace {

using nlohmann::json;

/// Keys of one object, missing and null ones alike falling back.
struct Config {
  const json& object;
  const std::string& file;
  std::string in = {};  ///< the map that the keys are in, "rope_scaling/"; "" = the document

  bool has(const char* key) const { return object.contains(key) && !object[key].is_null(); }
  std::int64_t integer(const char* key) const {
    if (!has(key) || !object[key].is_number_integer())
      throw_error(Code::usage, "{}: {}{}: found {}, needs a whole number", file, in, key,
                  object.contains(key) ? object[key].dump() : "nothing");
    return object[key].get<std::int64_t>();
  }
  std::int64_t integer_or(const char* key, std::int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  double number(const char* key) const {
    if (!has(key) || !object[key].is_number())
      throw_error(Code::usage, "{}: {}{}: found {}, needs a number", file, in, key,
                  has(key) ? object[key].dump() : "nothing");
    return object[key].get<double>();
  }
  double number_or(const char* key, double fallback) const {
    return has(key) && object[key].is_number() ? object[key].get<double>() : fallback;
  }
  bool flag(const char* key, bool fallback) const {
    return has(key) && object[key].is_boolean() ? object[key].get<bool>() : fallback;
  }
  std::string text(const char* key, const std::string& fallback) const {
    return has(key) && object[key].is_string() ? object[key].get<std::string>() : fallback;
  }
  Config map(const char* key) const {
    static const json kEmpty = json::object();
    return {has(key) ? object[key] : kEmpty, file, in + key + "/"};
  }
  void must_be(const char* key, bool good, const char* reads) const {
    must_be(key, good, reads, has(key) ? object[key].dump() : "nothing");
  }
  void must_be(const char* key, bool good, const char* reads, const std::string& found) const {
    if (!good)
      throw_error(Code::usage, "{}: {}{}: found {}, reads {}; such a model is not supported", file, in, key, found,
                  reads);
  }
};

/// The fields of one "rope_scaling"; `model` is the whole config, which has the old length where those leave it out.
RopeScaling read_rope_scaling(const Config& c, const Config& model, const std::string& word) {
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
      throw_error(Code::usage, "{}: {}{}: found {}, which is not read for {}; such a model is not supported", c.file,
                  c.in, key, value.dump(), word);
  return out;
}

/// transformers 5 keeps both in "rope_parameters", older ones in "rope_theta" and "rope_scaling".
void read_rope(const Config& c, AttentionSpec& a) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    c.must_be(key, !c.has(key) || c.object[key].is_object(), "an object or null");
    const Config scaling = c.map(key);
    const std::string kind =
        scaling.text("type", scaling.text("rope_type", "default"));  // the older name first, as transformers does
    if (kind != "default") a.rope_scaling = read_rope_scaling(scaling, c, kind);
    a.rope_theta = scaling.number_or("rope_theta", a.rope_theta);
    scaling.must_be("partial_rotary_factor", scaling.number_or("partial_rotary_factor", 1) == 1, "1");
  }
  a.rope_theta = c.number_or("rope_theta", a.rope_theta);
  c.must_be("partial_rotary_factor", c.number_or("partial_rotary_factor", 1) == 1, "1");
}

/// attention_bias of Llama and of families that took it over.
void read_attention_bias(const Config& c, AttentionSpec& a) {
  if (c.flag("attention_bias", false)) a.bias = AttentionSpec::Bias::all;
}

/// Keys that Llama and its descendants share.
void read_llama_like(const Config& c, ModelSpec& m) {
  m.layers = c.integer("num_hidden_layers");
  m.d_model = c.integer("hidden_size");
  m.heads = c.integer("num_attention_heads");
  m.kv_heads = c.integer_or("num_key_value_heads", m.heads);
  m.head_dim = c.integer_or("head_dim", m.heads > 0 ? m.d_model / m.heads : 0);
  m.norm_eps = c.number_or("rms_norm_eps", m.norm_eps);
  m.tied = c.flag("tie_word_embeddings", false);
  read_rope(c, m.attention);
  c.must_be("hidden_act", c.text("hidden_act", "silu") == "silu", "silu");
  for (const char* key : {"mlp_bias", "use_sliding_window"}) c.must_be(key, !c.flag(key, false), "false");
}

void read_dbrx(const Config& c, ModelSpec& m) {
  const Config attention = c.map("attn_config"), ffn = c.map("ffn_config");
  m.layers = c.integer("n_layers");
  m.d_model = c.integer("d_model");
  m.heads = c.integer("n_heads");
  m.kv_heads = attention.integer("kv_n_heads");
  m.head_dim = m.heads > 0 ? m.d_model / m.heads : 0;
  read_rope(attention, m.attention);
  attention.must_be("rope_scaling", !m.attention.rope_scaling.on(), "null");
  m.attention.clip_qkv = attention.number_or("clip_qkv", 0);
  m.norm = Norm::layernorm;
  m.ffn = ffn.integer("ffn_hidden_size");
  m.experts = ffn.integer("moe_num_experts");
  m.top_k = ffn.integer("moe_top_k");
  m.router.normalize = !ffn.object.contains("moe_normalize_expert_weights") || ffn.has("moe_normalize_expert_weights");
  if (m.router.normalize)
    ffn.must_be("moe_normalize_expert_weights", ffn.number_or("moe_normalize_expert_weights", 1) == 1, "1 or null");
  m.router.aux_loss_weight = ffn.number_or("moe_loss_weight", m.router.aux_loss_weight);
}

void read_mixtral(const Config& c, ModelSpec& m) {
  m.attention.rope_theta = 1e6;
  read_llama_like(c, m);
  c.must_be("attention_bias", !c.flag("attention_bias", false), "false");
  c.must_be("sliding_window", !c.has("sliding_window"), "null");
  m.ffn = c.integer("intermediate_size");
  m.experts = c.integer("num_local_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", m.router.aux_loss_weight);
}

void read_softmax_router(const Config& c, ModelSpec& m) {
  m.experts = c.integer("num_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.router.normalize = c.flag("norm_topk_prob", false);
  m.router.aux_loss_weight = c.number_or("router_aux_loss_coef", m.router.aux_loss_weight);
}

void read_olmoe(const Config& c, ModelSpec& m) {
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.attention.qk_norm = AttentionSpec::QkNorm::full;
  m.attention.clip_qkv = c.number_or("clip_qkv", 0);
  m.ffn = c.integer("intermediate_size");
  read_softmax_router(c, m);
}

void read_qwen3_moe(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  c.must_be("decoder_sparse_step", c.integer_or("decoder_sparse_step", 1) == 1, "1");
  c.must_be("mlp_only_layers", !c.has("mlp_only_layers") || c.object["mlp_only_layers"].empty(), "an empty list");
  m.attention.qk_norm = AttentionSpec::QkNorm::head;
  m.ffn = c.integer("moe_intermediate_size");
  read_softmax_router(c, m);
}

void read_deepseek(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  MlaSpec& a = m.attention.mla;
  a.kv_lora_rank = c.integer("kv_lora_rank");
  a.q_lora_rank = c.integer_or("q_lora_rank", 0);
  a.qk_nope_head_dim = c.integer("qk_nope_head_dim");
  a.qk_rope_head_dim = c.integer("qk_rope_head_dim");
  a.v_head_dim = c.integer("v_head_dim");
  m.kv_heads = m.heads;
  m.head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  m.ffn = c.integer("moe_intermediate_size");
  m.experts = c.integer("n_routed_experts");
  m.top_k = c.integer("num_experts_per_tok");
  m.dense_layers = c.integer_or("first_k_dense_replace", 0);
  m.dense_ffn = m.dense_layers > 0 ? c.integer("intermediate_size") : 0;
  m.shared_ffn = c.integer_or("n_shared_experts", 0) * m.ffn;
  c.must_be("moe_layer_freq", c.integer_or("moe_layer_freq", 1) == 1, "1");
  c.must_be("rope_interleave", c.flag("rope_interleave", true), "true");
  RouterSpec& r = m.router;
  const bool v3 = c.text("model_type", "") == "deepseek_v3";
  r.score = c.text("scoring_func", v3 ? "sigmoid" : "softmax") == "sigmoid" ? RouterSpec::Score::sigmoid
                                                                            : RouterSpec::Score::softmax;
  const std::string method = c.text("topk_method", v3 ? "noaux_tc" : "greedy");
  c.must_be("topk_method", method == "greedy" || method == "group_limited_greedy" || method == "noaux_tc",
            "greedy, group_limited_greedy, noaux_tc");
  if (method != "greedy") {
    r.groups = c.integer_or("n_group", 1);
    r.top_groups = c.integer_or("topk_group", r.groups);
  }
  if (method == "group_limited_greedy") r.group_worth = RouterSpec::GroupWorth::best;
  if (method == "noaux_tc") r.bias_update_rate = 0.001;  // DeepSeek-V3 report, section 4.2
  r.normalize = c.flag("norm_topk_prob", v3);
  r.scale = c.number_or("routed_scaling_factor", v3 ? 2.5 : 1.0);
  r.aux_loss_weight = c.number_or("aux_loss_alpha", v3 ? 0.0001 : 0.001);
}

void read_mpt(const Config& c, ModelSpec& m) {
  const Config attention = c.map("attn_config");
  m.layers = c.integer("n_layers");
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
  m.layers = c.integer("num_hidden_layers");
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
  read_rope(c, m.attention);
  c.must_be("parallel_attn", newer || c.flag("parallel_attn", true), "true");
  c.must_be("bias", !c.flag("bias", false), "false");
  c.must_be("alibi", !c.flag("alibi", false), "false");
  c.must_be("activation", c.text("activation", "gelu") == "gelu", "gelu");
  m.attention.parallel = newer && c.integer_or("num_ln_in_parallel_attn", 2) == 2 ? AttentionSpec::Parallel::two_norms
                                                                                  : AttentionSpec::Parallel::one_norm;
}

void read_llama(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  read_attention_bias(c, m.attention);
  m.ffn = c.integer("intermediate_size");
}

void read_qwen2(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  m.attention.bias = AttentionSpec::Bias::qkv;
  m.ffn = c.integer("intermediate_size");
}

const std::map<std::string, std::function<void(const Config&, ModelSpec&)>>& families() {
  static const std::map<std::string, std::function<void(const Config&, ModelSpec&)>> table{
      {"dbrx", read_dbrx},
      {"mixtral", read_mixtral},
      {"olmoe", read_olmoe},
      {"qwen3_moe", read_qwen3_moe},
      {"deepseek_v2", read_deepseek},
      {"deepseek_v3", read_deepseek},
      {"mpt", read_mpt},
      {"falcon", read_falcon},
      {"llama", read_llama},
      {"qwen2", read_qwen2}};
  return table;
}

/// What this file calls our keys: of the names that families have for one, the name that is there.
std::map<std::string, std::string> key_names(const json& document) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> kNames{
      {"n_layers", {"num_hidden_layers", "n_layers"}},
      {"d_model", {"hidden_size", "d_model"}},
      {"n_heads", {"num_attention_heads", "n_heads"}},
      {"kv_n_heads", {"num_key_value_heads", "num_kv_heads", "attn_config/kv_n_heads"}},
      {"head_dim", {"head_dim", "qk_rope_head_dim"}},
      {"ffn_hidden_size",
       {"moe_intermediate_size", "intermediate_size", "ffn_config/ffn_hidden_size", "ffn_hidden_size",
        "expansion_ratio"}},
      {"dense_ffn_hidden_size", {"intermediate_size"}},
      {"moe_num_experts", {"n_routed_experts", "num_local_experts", "num_experts", "ffn_config/moe_num_experts"}},
      {"moe_top_k", {"num_experts_per_tok", "ffn_config/moe_top_k"}},
      {"first_k_dense", {"first_k_dense_replace"}},
      {"moe_n_group", {"n_group"}},
      {"moe_topk_group", {"topk_group"}}};
  std::map<std::string, std::string> out;
  for (const auto& [ours, theirs] : kNames)
    for (const std::string& name : theirs)
      if (document.contains(json::json_pointer("/" + name))) {
        out.emplace(ours, name);
        break;
      }
  return out;
}

}  // namespace

ModelSpec model_from_hugging_face(const std::filesystem::path& path) {
  const std::string file = path.string();
  const json document = read_json(path);
  if (!document.is_object()) throw_error(Code::usage, "{}: not a JSON object; needs a Hugging Face config.json", file);
  const Config config{document, file};
  const std::string type = config.text("model_type", "");
  const auto family = families().find(type);
  if (family == families().end()) {
    std::string names;
    for (const auto& [name, read] : families()) names += (names.empty() ? "" : ", ") + name;
    throw_error(Code::usage, "{}: model_type: found '{}', reads {}", file, type, names);
  }
  ModelSpec m;
  m.source = file;
  const std::string name = config.text("_name_or_path", "");
  m.name = name.empty() ? type : name;
  m.vocab = config.integer("vocab_size");
  family->second(config, m);
  m.check(file, key_names(document));
  return m;
}

}  // namespace wt
