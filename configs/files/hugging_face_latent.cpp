// Families with latent attention (DeepSeek-V2), with experts or without, and DeepSeek-V4.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "configs/files/hugging_face_families.hpp"

namespace wt {
namespace {

using nlohmann::json;
using Config = HuggingFaceConfig;

void read_latent_attention(const Config& c, ModelSpec& m) {
  read_attention_bias(c, m.attention);
  MlaSpec& a = m.attention.mla;
  a.kv_lora_rank = c.integer("kv_lora_rank");
  a.q_lora_rank = c.integer_or("q_lora_rank", 0);
  a.qk_nope_head_dim = c.integer("qk_nope_head_dim");
  a.qk_rope_head_dim = c.integer("qk_rope_head_dim");
  a.v_head_dim = c.integer("v_head_dim");
  read_llama_like(c, m);  // after the ranks: which part of a head rotates is theirs to say
  m.kv_heads = m.heads;
  m.head_dim = a.qk_nope_head_dim + a.qk_rope_head_dim;
  if (!c.flag("rope_interleave", true)) simulate_only(m, "rope_interleave false");
}

void read_deepseek_router(const Config& c, ModelSpec& m) {
  RouterSpec& r = m.router;
  const std::string type = c.text("model_type", "");
  const bool v3 = type != "deepseek_v2" && type != "mistral4";
  r.score = c.text("scoring_func", v3 ? "sigmoid" : "softmax") == "sigmoid" ? RouterSpec::Score::sigmoid
                                                                            : RouterSpec::Score::softmax;
  const std::string method = c.text("topk_method", v3 ? "noaux_tc" : "greedy");
  c.must_be("topk_method", method == "greedy" || method == "group_limited_greedy" || method == "noaux_tc",
            "greedy, group_limited_greedy, noaux_tc");
  if (method != "greedy") {
    r.groups = c.integer_or("n_group", 1);
    r.top_groups = c.integer_or("topk_group", r.groups);
  }
  if (method == "group_limited_greedy") r.group_score = RouterSpec::GroupScore::best;
  if (method == "noaux_tc") r.bias_update_rate = 0.001;  // DeepSeek-V3 report, section 4.2
  r.normalize = c.flag("norm_topk_prob", v3);
  r.scale = c.number_or("routed_scaling_factor", v3 ? 2.5 : 1.0);
  r.aux_loss_weight = c.number_or("aux_loss_alpha", v3 ? 0.0001 : 0.001);
}

void read_deepseek(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_latent_attention(c, m);
  read_experts(c, m);
  const std::string type = c.text("model_type", "");
  read_dense_layers(c, type == "glm4_moe_lite" ? 1 : 0, m);
  const std::int64_t every = c.integer_or("moe_layer_freq", 1);
  c.must_be("moe_layer_freq", every >= 1 && every <= limits::kLayers, "a whole number >= 1");
  if (every > 1) {
    m.moe_pattern.repeats.assign(static_cast<std::size_t>(every), false), m.moe_pattern.repeats.front() = true;
    m.dense_ffn = c.integer("intermediate_size");
  }
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
  read_deepseek_router(c, m);
  if (type == "axk1") simulate_only(m, "post_mlp_layernorm");  // of the experts' sum
}

/// DeepSeek-V3.2 and GLM-5: latent attention to the keys that an indexer chooses.
void read_deepseek_sparse(const Config& c, ModelSpec& m) {
  read_deepseek(c, m);
  m.attention.indexer = {c.integer_or("index_topk", 2048), c.integer_or("index_n_heads", 64),
                         c.integer_or("index_head_dim", 128)};
  m.approximations.push_back(
      "sparse attention is predicted as a window of index_topk keys and a kernel for the indexer's scores");
  if (c.integer_or("index_topk_freq", 1) > 1)
    m.approximations.push_back("every layer has an indexer of its own; in the model some use an earlier layer's");
}

void read_dense_latent(const Config& c, ModelSpec& m) {
  const bool minicpm = c.text("model_type", "") == "minicpm3";
  m.norm_eps = minicpm ? 1e-5 : 1e-6, m.tied = true;
  json with = c.object;
  if (minicpm && !c.has("v_head_dim"))  // its class computes it
    with["v_head_dim"] = c.integer("hidden_size") / std::max<std::int64_t>(1, c.integer("num_attention_heads"));
  read_latent_attention({with, c.file, c.in, c.asked}, m);
  for (const char* key : {"scale_depth", "dim_model_base"})
    if (c.has(key)) simulate_only(m, key);
  m.ffn = c.integer("intermediate_size");
}

/// A layer of LongCat-Flash has attention and an FFN twice, and experts beside the second half. It is two layers here,
/// with the experts in the first. Zero experts return their input.
void read_longcat(const Config& c, ModelSpec& m) {
  json with = c.object;
  const std::int64_t layers = c.layers("num_layers");
  with["num_hidden_layers"] = 2 * layers;
  m.attention.rope_theta = 1e7;
  read_latent_attention({with, c.file, c.in, c.asked}, m);
  read_experts(c, m);
  m.dense_ffn = m.shared_ffn = c.integer("ffn_hidden_size");
  m.moe_pattern.repeats = {true, false};
  m.router.scale = c.number_or("routed_scaling_factor", 6);
  m.router.normalize = false;
  m.router.bias_update_rate = 0.001, m.router.aux_loss_weight = 0;
  const std::int64_t zero = c.integer_or("zero_expert_num", 0), all = m.experts + zero;
  if (zero <= 0) return;
  m.top_k = std::max<std::int64_t>(1, (m.top_k * m.experts + all / 2) / std::max<std::int64_t>(1, all));
  simulate_only(m, "zero_expert_num");
  m.approximations.push_back(
      fmt::format("of the {} experts of a token those that compute are taken, by their share among all: {}",
                  c.any({"moe_topk", "num_experts_per_tok"}), m.top_k));
  m.approximations.push_back("the overlap of a layer's experts with its second half is not simulated");
}

/// Queries and output in two steps, keys that are the values, and attention to a window and to compressed keys, the
/// best of which an indexer chooses in half of the layers.
void read_deepseek_v4(const Config& c, ModelSpec& m) {
  m.norm_eps = 1e-6;
  read_llama_like(c, m);
  AttentionSpec& a = m.attention;
  a.mla.q_lora_rank = c.integer("q_lora_rank");
  a.shared_kv = a.sinks = true;
  a.out_rank = c.integer("o_lora_rank"), a.out_groups = c.integer("o_groups");
  constexpr std::int64_t kCompression = 4;  // tokens of a compressed key; the indexer scores these keys
  a.indexer = {c.integer_or("sliding_window", 128) + c.integer("index_topk"),
               std::max<std::int64_t>(1, c.integer("index_n_heads") / kCompression), c.integer("index_head_dim")};
  read_experts(c, m);
  m.mtp_layers = c.integer_or("num_nextn_predict_layers", 0);
  read_sigmoid_router(c, m.router);
  m.router.scale = c.number_or("routed_scaling_factor", 1.5);
  for (const char* feature : {"hyper-connections", "hash_moe", "swiglu_limit", "partial_rotary_factor"})
    simulate_only(m, feature);
  if (c.text("scoring_func", "sqrtsoftplus") != "sigmoid") simulate_only(m, "scoring_func");
  m.approximations.push_back(
      "compressed attention is predicted in every layer as a window of sliding_window + index_topk keys and a kernel "
      "for the indexer's scores of a quarter of the keys; the compressors are left out (below 1 % of the parameters)");
  m.approximations.push_back("hyper-connections are left out: one residual stream instead of hc_mult");
}

}  // namespace

const Families& latent_families() {
  static const Families kFamilies{{"axk1", read_deepseek},
                                  {"deepseek_v2", read_deepseek},
                                  {"deepseek_v3", read_deepseek},
                                  {"deepseek_v32", read_deepseek_sparse},
                                  {"deepseek_v4", read_deepseek_v4},
                                  {"glm4_moe_lite", read_deepseek},
                                  {"glm_moe_dsa", read_deepseek_sparse},
                                  {"kimi_k2", read_deepseek},
                                  {"longcat_flash", read_longcat},
                                  {"minicpm3", read_dense_latent},
                                  {"mistral4", read_deepseek},
                                  {"youtu", read_dense_latent}};
  return kFamilies;
}

}  // namespace wt
