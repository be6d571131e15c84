#include "configs/files/model.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/lookup.hpp"
#include "configs/base/nearest.hpp"
#include "configs/base/text.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/find.hpp"
#include "configs/files/hub_models.hpp"
#include "configs/files/limits.hpp"

namespace wt {

std::int64_t ModelSpec::attention_parameters() const {
  const MlaSpec& a = attention.mla;
  const std::int64_t values = heads * v_head_dim();
  const std::int64_t output =
      attention.out_rank > 0 ? attention.out_rank * (values + attention.out_groups * d_model) : values * d_model;
  const std::int64_t queries = (attention.output_gate ? 2 : 1) * heads * head_dim;
  const std::int64_t q = a.q_lora_rank > 0 ? a.q_lora_rank * (d_model + queries) : d_model * queries;
  const std::int64_t kv = a.on() ? d_model * (a.kv_lora_rank + a.qk_rope_head_dim) +
                                       a.kv_lora_rank * heads * (a.qk_nope_head_dim + a.v_head_dim)
                                 : d_model * kv_heads * head_dim * (attention.shared_kv ? 1 : 2);
  const std::int64_t index = attention.indexer.projections(a.q_lora_rank > 0 ? a.q_lora_rank : d_model, d_model);
  return q + kv + output + index;
}

std::int64_t ModelSpec::qkv_biases() const {
  if (attention.bias == AttentionSpec::Bias::none) return 0;
  const MlaSpec& a = attention.mla;
  return a.on() ? a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim : head_dim * (heads + 2 * kv_heads);
}
std::int64_t ModelSpec::attention_biases() const {
  return qkv_biases() + (attention.bias == AttentionSpec::Bias::all ? d_model : 0);
}

double ModelSpec::softmax_scale() const {
  const double plain = 1.0 / std::sqrt(static_cast<double>(head_dim));
  return attention.mla.on() ? plain * latent_softmax_factor(attention.rope_scaling) : plain;
}

std::int64_t ModelSpec::dense_parameters(std::int64_t layer) const {
  using enum AttentionSpec::QkNorm;
  const bool one_norm = attention.parallel == AttentionSpec::Parallel::one_norm || !feeds_forward(layer);
  const std::int64_t norms = (one_norm ? 1 : 2) * (norm_placement == NormPlacement::both ? 2 : 1) * norm_parameters();
  const std::int64_t qk_gains = attention.qk_norm == head   ? 2 * head_dim
                                : attention.qk_norm == full ? (heads + kv_heads) * head_dim
                                                            : 0;
  const std::int64_t qk_norm = attention.qk_layernorm && norm_bias ? 2 * qk_gains : qk_gains;
  const std::int64_t latent_norms = attention.mla.kv_lora_rank + attention.mla.q_lora_rank;
  const std::int64_t router = moe(layer) ? d_model * (experts + 2 * moe_latent) + (ffn_bias ? experts : 0) : 0;
  const std::int64_t index_norm = attention.indexer.on() ? 2 * attention.indexer.head_dim : 0;
  const std::int64_t module = mtp(layer) ? 2 * d_model * d_model + 3 * norm_parameters() : 0;
  const std::int64_t beside_projections =
      linear_mixer(layer) ? linear.other_parameters()
                          : attention_biases() + (attention.sinks ? heads : 0) + qk_norm + latent_norms + index_norm;
  return mixer_projections(layer) + beside_projections + norms + router + ffn_parameters(ffn_width(layer)) + module;
}
std::int64_t ModelSpec::ffn_parameters(std::int64_t width) const {
  const std::int64_t biases = ffn_bias && width > 0 ? ffn_rows(width) + d_model : 0;
  return d_model * (ffn_rows(width) + width) + biases;
}
std::int64_t ModelSpec::moe_layers_before(std::int64_t end) const {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < end; ++layer) count += moe(layer) ? 1 : 0;
  return count;
}
std::int64_t ModelSpec::expert_parameters() const {
  return expert_width() * (ffn_rows(ffn) + ffn) + (ffn_bias ? ffn_rows(ffn) + expert_width() : 0);
}
std::int64_t ModelSpec::embedding_parameters() const { return tied ? 0 : (vocab + learned_positions) * d_model; }
std::int64_t ModelSpec::head_parameters() const {
  return (vocab + (tied ? learned_positions : 0)) * d_model + norm_parameters();
}

std::int64_t ModelSpec::total_parameters() const {
  std::int64_t total = moe_layers() * experts * expert_parameters() + embedding_parameters() + head_parameters();
  for (std::int64_t layer = 0; layer < blocks(); ++layer) total += dense_parameters(layer);
  return total;
}

std::int64_t ModelSpec::active_parameters() const {
  return total_parameters() - moe_layers() * (experts - top_k) * expert_parameters();
}

double ModelSpec::mean_keys(std::int64_t layer, std::int64_t seq) const {
  const AttentionSpec& a = attention;
  const double length = static_cast<double>(seq);
  const std::int64_t chosen = attention.indexer.top_keys, limit = std::max(a.window, a.chunk);
  if (seq > 0 && local_attention(layer) && limit < seq) {
    const double w = static_cast<double>(limit);
    return a.window > 0 ? w - w * w / (2 * length) : w / 2;
  }
  if (chosen == 0 || chosen >= seq) return length / 2;
  const double best = static_cast<double>(chosen);
  return best - best * best / (2 * length);
}

std::int64_t ModelSpec::product_weights() const {
  std::int64_t weights =
      (1 + mtp_layers) * vocab * d_model +
      moe_layers() * (d_model * (experts + 2 * moe_latent) + top_k * expert_width() * (ffn_rows(ffn) + ffn));
  for (std::int64_t layer = 0; layer < blocks(); ++layer)
    weights += mixer_projections(layer) + d_model * (ffn_rows(ffn_width(layer)) + ffn_width(layer)) +
               (mtp(layer) ? 2 * d_model * d_model : 0);
  return weights;
}

double ModelSpec::flops_per_token(std::int64_t seq) const {
  double keys = 0, scored = 0, linear_flops = 0;
  for (std::int64_t layer = 0; layer < blocks(); ++layer)
    if (linear_mixer(layer))
      linear_flops += 3.0 * static_cast<double>(linear.flops());
    else
      keys += mean_keys(layer, seq), scored += attention.indexer.on() ? static_cast<double>(seq) / 2 : 0;
  return 6.0 * static_cast<double>(product_weights()) +
         6.0 * static_cast<double>(heads * (head_dim + v_head_dim())) * keys +
         6.0 * static_cast<double>(attention.indexer.heads * attention.indexer.head_dim) * scored + linear_flops;
}

std::vector<std::string> ModelSpec::untrainable() const {
  std::vector<std::string> out = simulated_only;
  if (linear.on()) out.emplace_back("linear_config");
  if (attention.output_gate) out.emplace_back("attention_output_gate");
  if (attention.indexer.on()) out.emplace_back("index_topk");
  if (attention.out_rank > 0) out.emplace_back("o_lora_rank");
  if (attention.shared_kv) out.emplace_back("shared_kv");
  if (!attention.mla.on() && attention.mla.q_lora_rank > 0) out.emplace_back("q_lora_rank without kv_lora_rank");
  if (norm_placement != NormPlacement::before) out.emplace_back("norm_placement");
  if (moe_latent > 0) out.emplace_back("moe_latent_size");
  if (!ffn_layers.repeats.empty()) out.emplace_back("ffn_layers");
  if (router.padded) out.emplace_back("moe_pad_expert_input_to_capacity");
  return out;
}

namespace {

/// Checks sizes in floating point, because integer products could overflow.
void check_parameters(const ModelSpec& m, const std::string& where) {
  const auto as_double = [](std::int64_t value) { return static_cast<double>(value); };
  const double widest = as_double(std::max({m.ffn, m.dense_ffn, m.shared_ffn}));
  const double layer =
      as_double(m.d_model) * (4 * as_double(m.heads) * as_double(m.head_dim) +
                              as_double(std::max<std::int64_t>(1, m.experts) + 1) * widest * (m.gated() ? 3 : 2));
  const double most = as_double(m.layers) * layer + 2 * as_double(m.vocab) * as_double(m.d_model);
  if (most > limits::kParameters)
    throw_usage("{}: found a model of some {:.1e} parameters, needs at most {:.0e}", where, most, limits::kParameters);
}

}  // namespace

void ModelSpec::check(const std::string& where, const std::map<std::string, std::string>& names) const {
  const auto name = [&](const char* key) { return value_or(names, key, key); };
  const auto whole = [&](const char* key, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      throw_usage("{}: {}: found {}, needs a whole number in {}..{}", where, name(key), value, least, most);
  };
  const auto positive = [&](const char* key, std::int64_t value, std::int64_t most = limits::kWidth) {
    whole(key, value, 1, most);
  };
  positive("n_layers", layers, limits::kLayers), positive("d_model", d_model);
  positive("n_heads", heads, limits::kHeads), positive("kv_n_heads", kv_heads, limits::kHeads);
  positive("head_dim", head_dim), positive("ffn_hidden_size", ffn);
  positive("vocab_size", vocab, limits::kVocabulary);
  if (router.padded && router.capacity_factor < 1)
    throw_usage("{}: {}: found with a capacity of {}, needs 1 or more", where, name("moe_pad_expert_input_to_capacity"),
                router.capacity_factor);
  if (!(norm_eps >= 0 && norm_eps <= 1))
    throw_usage("{}: {}: found {}, needs a number in 0..1", where, name("norm_eps"), norm_eps);
  if (!attention.alibi && learned_positions == 0 && !(attention.rope_theta >= 1))
    throw_usage("{}: {}: found {}, needs a number >= 1", where, name("rope_theta"), attention.rope_theta);
  if (heads % kv_heads != 0)
    throw_usage("{}: {}: found {}, needs a divisor of {} = {}", where, name("kv_n_heads"), kv_heads, name("n_heads"),
                heads);
  if (rope_dim() % 2 != 0)
    throw_usage("{}: {}: found {}, needs an even number (rotary pairs)", where, name("head_dim"), rope_dim());
  attention.rope_scaling.check(where);
  if (attention.rope_scaling.on() && (attention.alibi || attention.rope_theta <= 1))
    throw_usage("{}: rope_scaling: found {} with {}, needs rotary positions of a rope_theta above 1", where,
                to_string(attention.rope_scaling.kind),
                attention.alibi ? "alibi" : fmt::format("rope_theta {}", attention.rope_theta));
  if (norm_bias && norm == Norm::rmsnorm)
    throw_usage("{}: norm_bias: found true with rmsnorm, needs norm_type layernorm", where);
  if (attention.mla.on()) {
    positive("qk_nope_head_dim", attention.mla.qk_nope_head_dim), positive("v_head_dim", attention.mla.v_head_dim);
    positive("qk_rope_head_dim", attention.mla.qk_rope_head_dim);
    if (kv_heads != heads || attention.qk_norm != AttentionSpec::QkNorm::none || attention.clip_qkv > 0 ||
        attention.alibi)
      throw_usage(
          "{}: kv_lora_rank: found {} (latent attention) with kv_n_heads, qk_ln, qk_gn, clip_qkv or alibi; leave these "
          "out",
          where, attention.mla.kv_lora_rank);
    if (attention.bias == AttentionSpec::Bias::qkv)
      throw_usage("{}: attention_bias: found qkv with kv_lora_rank {} (latent attention), allowed none, all", where,
                  attention.mla.kv_lora_rank);
  }
  if (attention.window < 0 || attention.chunk < 0 || (attention.window > 0 && attention.chunk > 0))
    throw_usage("{}: {}: found {} with attention_chunk_size {}, needs one of them above 0, or none", where,
                name("sliding_window"), attention.window, attention.chunk);
  if (!attention.any_local() && !attention.local.repeats.empty())
    throw_usage("{}: sliding_window_layers: found without a window, needs {} or attention_chunk_size", where,
                name("sliding_window"));
  if (linear.on()) {
    positive("linear_config/key_heads", linear.key_heads), positive("linear_config/value_heads", linear.value_heads);
    positive("linear_config/key_head_dim", linear.key_head_dim);
    positive("linear_config/value_head_dim", linear.value_head_dim);
    positive("linear_config/conv_kernel", linear.conv_kernel), positive("linear_config/chunk", linear.chunk);
    if (linear.value_heads % linear.key_heads != 0)
      throw_usage("{}: {}: found {}, needs a divisor of {} = {}", where, name("linear_config/key_heads"),
                  linear.key_heads, name("linear_config/value_heads"), linear.value_heads);
  }
  if (attention.parallel != AttentionSpec::Parallel::none && (linear.on() || !ffn_layers.repeats.empty()))
    throw_usage("{}: parallel_attn: found true with linear_config or ffn_layers; leave these out", where);
  if (attention.mla.on() && (attention.output_gate || attention.shared_kv))
    throw_usage("{}: {}: found true with kv_lora_rank (latent attention); leave it out", where,
                attention.output_gate ? "attention_output_gate" : "shared_kv");
  if (attention.parallel != AttentionSpec::Parallel::none && norm_placement != NormPlacement::before)
    throw_usage("{}: norm_placement: found after or both with parallel_attn; leave one of them out", where);
  if (attention.indexer.on()) {
    positive("index_topk", attention.indexer.top_keys, limits::kSequence);
    positive("index_n_heads", attention.indexer.heads, limits::kHeads);
    positive("index_head_dim", attention.indexer.head_dim);
    if (attention.any_local() || attention.indexer.head_dim % 2 != 0)
      throw_usage("{}: {}: found with {}, needs layers without windows and an even index_head_dim", where,
                  name("index_topk"), attention.any_local() ? "sliding_window" : "an odd index_head_dim");
  }
  whole("o_lora_rank", attention.out_rank, 0, limits::kWidth), positive("o_groups", attention.out_groups);
  if (attention.out_rank > 0 && heads % attention.out_groups != 0)
    throw_usage("{}: {}: found {}, needs a divisor of {} = {}", where, name("o_groups"), attention.out_groups,
                name("n_heads"), heads);
  whole("moe_latent_size", moe_latent, 0, limits::kWidth);
  whole("max_seq_len", learned_positions, 0, limits::kSequence);
  if (learned_positions > 0 && (attention.alibi || attention.rope_scaling.on() || mtp_layers > 0))
    throw_usage("{}: {}: found true with {}; leave one of them out", where, name("learned_pos_emb"),
                attention.alibi  ? "alibi"
                : mtp_layers > 0 ? "mtp_num_layers"
                                 : "rope_scaling");
  if (attention.qk_layernorm && attention.qk_norm == AttentionSpec::QkNorm::none)
    throw_usage("{}: qk_norm_type: found layernorm without qk_ln or qk_gn; needs one of them", where);
  whole("mtp_num_layers", mtp_layers, 0, limits::kLayers);
  whole("shared_expert_hidden_size", shared_ffn, 0, limits::kWidth);
  whole("dense_ffn_hidden_size", dense_ffn, 0, limits::kWidth);
  whole("kv_lora_rank", attention.mla.kv_lora_rank, 0, limits::kWidth);
  whole("q_lora_rank", attention.mla.q_lora_rank, 0, limits::kWidth);
  check_parameters(*this, where);
  if (experts == 0) {
    if (top_k != 0 || dense_layers != 0 || shared_ffn != 0 || moe_latent != 0)
      throw_usage("{}: {}: found 0 with {}, {} or shared experts; needs experts", where, name("moe_num_experts"),
                  name("moe_top_k"), name("first_k_dense"));
    return;
  }
  if (attention.parallel != AttentionSpec::Parallel::none)
    throw_usage("{}: parallel_attn: found true with {} experts, needs a model without experts", where, experts);
  positive("moe_num_experts", experts, limits::kExperts), positive("moe_top_k", top_k, limits::kExperts);
  if (dense_layers < 0 || dense_layers >= layers)
    throw_usage("{}: {}: found {}, needs 0 to {} - 1 = {}", where, name("first_k_dense"), dense_layers,
                name("n_layers"), layers - 1);
  if (moe_layers() == 0)
    throw_usage("{}: {}: found no layer with experts among the {} layers, needs one", where, name("moe_layer_freq"),
                layers);
  bool dense = false;
  for (std::int64_t layer = 0; layer < layers; ++layer) dense = dense || (feeds_forward(layer) && !moe(layer));
  if (dense) positive("dense_ffn_hidden_size", dense_ffn);
  const RouterSpec& r = router;
  positive("moe_n_group", r.groups), positive("moe_topk_group", r.top_groups);
  if (experts % r.groups != 0)
    throw_usage("{}: {}: found {}, needs a divisor of {} = {}", where, name("moe_n_group"), r.groups,
                name("moe_num_experts"), experts);
  if (r.top_groups > r.groups)
    throw_usage("{}: {}: found {}, needs at most {} = {}", where, name("moe_topk_group"), r.top_groups,
                name("moe_n_group"), r.groups);
  if (const std::int64_t eligible = experts / r.groups * r.top_groups; top_k > eligible)
    throw_usage("{}: {}: found {}, needs at most {} ({} = {}{})", where, name("moe_top_k"), top_k, eligible,
                name("moe_num_experts"), experts,
                r.groups > 1 ? fmt::format(", {} of {} groups", r.top_groups, r.groups) : "");
}

std::filesystem::path model_file(const std::string& name_or_file) {
  namespace fs = std::filesystem;
  std::error_code none;  // a name may be too long
  return fs::is_directory(name_or_file, none) ? fs::path(name_or_file) / "config.json"
                                              : find_config("models", name_or_file);
}

std::string model_repository(const std::string& name) {
  std::error_code none;
  if (std::filesystem::exists(name, none)) return "";
  const std::vector<std::string> presets = preset_names("models");
  if (std::ranges::find(presets, name) != presets.end()) return "";
  std::string repository = hub_repository(name);
  if (!repository.empty() || name.empty()) return repository;
  std::vector<std::string> known = presets;
  for (const std::string& each : hub_repositories())
    known.push_back(name.find('/') == name.npos ? each.substr(each.rfind('/') + 1) : each);
  throw_usage(
      "'{}' is neither a file, a preset of configs/models, nor a repository whose shape ships in "
      "configs/hub/models.json{}; presets: {}; for another model give its config.json",
      shortened(name), did_you_mean(name, known), fmt::join(presets, ", "));
}

ModelSpec read_model(const std::string& name_or_file) {
  if (const std::string repository = model_repository(name_or_file); !repository.empty()) {
    const nlohmann::json& config = hub_config(repository);
    if (config.contains("preset")) return read_model(config.at("preset").get<std::string>());
    ModelSpec model = model_from_hugging_face(config, "configs/hub/models.json: " + repository);
    model.name = repository.substr(repository.rfind('/') + 1);
    if (const std::string& source = hub_source(repository); source.starts_with("unconfirmed"))
      model.approximations.push_back("its shape is " + source);
    return model;
  }
  const std::filesystem::path file = model_file(name_or_file);
  if (file.extension() == ".json") return model_from_hugging_face(file);
  YamlMap map = YamlMap::from_file(file);
  ModelSpec model = model_from_yaml(map);
  map.finish();
  return model;
}

ModelSpec model_of(YamlMap& file, std::optional<LoraSpec>* lora) {
  const YAML::Node node = file.node("model");
  if (node.IsScalar()) return read_model(file.text("model"));
  YamlMap map = file.map("model");
  if (lora && map.has("peft_config")) *lora = read_peft_config(map.map("peft_config"));
  if (map.has("model_type")) {
    std::set<std::string> asked;
    ModelSpec model = model_from_hugging_face(yaml_to_json(node), map.where(""), &asked);
    for (std::string key : asked) {
      std::ranges::replace(key, '/', '.');
      map.also_asked(key);
    }
    return model;
  }
  ModelSpec model = model_from_yaml(map);
  map.finish();
  return model;
}

}  // namespace wt
