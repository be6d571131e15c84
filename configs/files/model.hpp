// The shape of a decoder-only transformer, dense or mixture of experts. Read from our YAML or from a Hugging Face
// config.json, of the families in hugging_face_families.hpp.
//
// A layer is attention, then a feed-forward part: one FFN (dense layers), or routed experts with an optional FFN for
// every token (shared experts). The first `dense_layers` layers of an MoE model may be dense, or a pattern may say
// which are. Modules of multi-token prediction, with one block each, may follow the layers.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "configs/files/layer_pattern.hpp"
#include "configs/files/linear_mixer.hpp"
#include "configs/files/lora.hpp"
#include "configs/files/rope_spec.hpp"

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

enum class Norm { rmsnorm, layernorm };
/// Norms of attention and FFN: of what they read (Llama), of what they add to the residual (OLMo-2), or both (Gemma-2).
enum class NormPlacement { before, after, both };
/// The activation of every FFN and expert. swiglu: silu(gate) * up. clamped_swiglu (GPT-OSS): (up + 1) * gate *
/// sigmoid(1.702 * gate) with gate <= 7 and up in +-7. gelu and gelu_tanh: gelu(up) by erf or tanh (Hendrycks and
/// Gimpel 2016, arXiv 1606.08415). geglu and geglu_tanh: gelu(gate) * up (Shazeer 2020, arXiv 2002.05202).
enum class Activation { swiglu, clamped_swiglu, gelu, gelu_tanh, geglu, geglu_tanh };

/// Multi-head latent attention (DeepSeek-V2, section 2.1): keys and values are projected up from one low-rank vector
/// per token; all heads share a rotary part of the key. ModelSpec::head_dim is then qk_nope + qk_rope.
struct MlaSpec {
  std::int64_t kv_lora_rank = 0;  ///< 0 = no MLA
  std::int64_t q_lora_rank = 0;   ///< 0 = queries in one projection
  std::int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  bool on() const { return kv_lora_rank > 0; }
};

/// Sparse attention with an indexer (DeepSeek-V3.2, section 2.1): a few narrow heads score all earlier keys, and
/// attention sees the best ones. Predicted as a window of top_keys keys and a kernel for the scores.
struct IndexerSpec {
  std::int64_t top_keys = 0;  ///< 0 = no indexer
  std::int64_t heads = 0, head_dim = 0;
  bool on() const { return top_keys > 0; }
  /// Queries from vectors of width `from`, one key and a weight a head from the block's input, and the key's LayerNorm.
  std::int64_t projections(std::int64_t from, std::int64_t d_model) const {
    return on() ? from * heads * head_dim + d_model * (head_dim + heads) : 0;
  }
};

struct AttentionSpec {
  enum class QkNorm { none, head, full };  ///< norm of q and k: over each head (Qwen3), over the projection (OLMoE)
  enum class Parallel { none, one_norm, two_norms };  ///< attention and FFN both read the block's input (Falcon)
  /// Biases of the projections: none; of q, k and v (Qwen2); of all (Llama's and Qwen3's attention_bias). With latent
  /// attention `all` means the products that read or write the residual stream: q_a, kv_a and the output.
  enum class Bias { none, qkv, all };
  QkNorm qk_norm = QkNorm::none;
  bool qk_layernorm = false;  ///< qk_norm is LayerNorm, with a bias where the model's norms have one; otherwise RMSNorm
  Parallel parallel = Parallel::none;
  Bias bias = Bias::none;
  double clip_qkv = 0;  ///< q, k and v are clamped to +-clip_qkv after their projection; 0 = no clamping
  bool alibi = false;   ///< linear biases (slopes as in Press et al. 2022) instead of rotary positions
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  MlaSpec mla;
  /// Keys that a query attends to in the layers of `local`: the last `window` keys including its own, or the earlier
  /// keys of its chunk of `chunk` tokens (Llama-4). 0 = all earlier keys. At most one of the two is set.
  std::int64_t window = 0, chunk = 0;
  LayerPattern local;
  IndexerSpec indexer;
  /// Without latent attention (DeepSeek-V4): queries through mla.q_lora_rank, keys that are the values as well, and an
  /// output projection in two steps, of groups of heads to out_rank each, then of all groups to d_model. 0 = one step.
  bool shared_kv = false;
  std::int64_t out_rank = 0, out_groups = 1;
  bool output_gate = false;  ///< sigmoid of a projection as wide as the queries, times the output (Qwen3-Next)
  bool sinks = false;        ///< one learned logit a head that takes part in every softmax (GPT-OSS)
  bool any_local() const { return window > 0 || chunk > 0; }
};

struct RouterSpec {
  enum class Score { softmax, sigmoid };
  /// For benchmarks: experts round robin, or drawn by Zipf's law (the same draw each step), independent of the scores.
  enum class Forced { none, balanced, zipf };
  /// The rank of a group of experts: the sum of its two best scores (DeepSeek-V3), or its best (DeepSeek-V2).
  enum class GroupScore { two_best, best };
  Score score = Score::softmax;
  bool normalize = true;    ///< divide the chosen weights by their sum
  double scale = 1.0;       ///< factor on the weights after normalisation
  std::int64_t groups = 1;  ///< groups of experts; only experts of the best top_groups groups can be chosen
  std::int64_t top_groups = 1;
  GroupScore group_score = GroupScore::two_best;
  double aux_loss_weight = 0.01;
  bool aux_of_microbatch = false;  ///< computed over a rank's microbatch (MegaBlocks), not over each sequence
  double z_loss_weight = 0.0;
  double bias_update_rate = 0;  ///< loss-free balancing: update step of the router's bias; 0 = off
  /// Rows that an expert accepts from one microbatch of one rank, relative to the balanced number. Rows beyond are
  /// dropped: they are neither moved nor computed. 0 = dropless. Depends on the layout.
  double capacity_factor = 0;
  /// Every expert computes as many rows as its capacity, missing ones as zeros (Megatron-Core's
  /// moe_pad_expert_input_to_capacity). Only simulated.
  bool padded = false;
  bool drops() const { return capacity_factor > 0; }
  /// The most of `rows` (tokens times top_k) that one of the experts accepts, at least 1; all if nothing is dropped.
  std::int64_t capacity(std::int64_t rows, std::int64_t experts) const {
    if (!drops()) return rows;
    const double most = capacity_factor * static_cast<double>(rows) / static_cast<double>(experts);
    return most < static_cast<double>(rows) ? std::max<std::int64_t>(1, static_cast<std::int64_t>(most)) : rows;
  }
  Forced forced = Forced::none;
  double zipf_exponent = 1.0;
};

struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t d_model = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< of queries and keys
  std::int64_t ffn = 0;       ///< hidden width of one expert; of the FFN in a model without experts
  std::int64_t experts = 0;   ///< routed experts a layer; 0 = dense model
  std::int64_t top_k = 0;
  std::int64_t dense_layers = 0;  ///< first layers of an MoE model, with an FFN of width dense_ffn and no experts
  LayerPattern moe_pattern;       ///< layers after these that have experts
  std::int64_t dense_ffn = 0;
  LayerPattern ffn_layers;      ///< layers with an FFN or experts; the others consist of a mixer only (Nemotron-H)
  std::int64_t shared_ffn = 0;  ///< hidden width of all shared experts of a layer together; 0 = none
  /// Width of the rows that experts compute, between two projections that a layer's experts share (Nemotron 3 Super);
  /// 0 = d_model.
  std::int64_t moe_latent = 0;
  bool ffn_bias = false;  ///< biases of FFNs and experts, after both products, and of the router (GPT-OSS)
  std::int64_t vocab = 0;
  /// Modules of multi-token prediction (DeepSeek-V3, section 2.2). Each norms the last hidden state and the next
  /// token's embedding, projects both together to d_model, and has a block, a final norm and a loss through the shared
  /// head.
  std::int64_t mtp_layers = 0;
  double mtp_loss_weight = 0.3;  ///< weight of the mean of their losses in the total (DeepSeek-V3, section 4.2)
  Activation activation = Activation::swiglu;
  Norm norm = Norm::rmsnorm;
  NormPlacement norm_placement = NormPlacement::before;
  bool norm_bias = false;  ///< layernorm only
  double norm_eps = 1e-5;
  bool tied = false;  ///< the output projection is the embedding
  /// Length of a table of learned positions, added to the embedding instead of rotary positions; 0 = none.
  std::int64_t learned_positions = 0;
  AttentionSpec attention;
  LinearMixerSpec linear;
  RouterSpec router;
  std::string source;  ///< file or citation
  /// Features that our trainer lacks and that change no size here. Such a model can only be simulated.
  std::vector<std::string> simulated_only;
  /// What this shape leaves out or changes of the model that its source describes: sentences for people.
  std::vector<std::string> approximations;

  /// The layers, followed by the modules of multi-token prediction, whose blocks equal the last layer.
  std::int64_t blocks() const { return layers + mtp_layers; }
  bool mtp(std::int64_t layer) const { return layer >= layers; }
  bool moe(std::int64_t layer) const {
    layer = std::min(layer, layers - 1);
    return experts > 0 && layer >= dense_layers && moe_pattern.at(layer) && ffn_layers.at(layer);
  }
  bool local_attention(std::int64_t layer) const {
    return attention.any_local() && attention.local.at(std::min(layer, layers - 1));
  }
  /// Whether the layer's mixer is the linear one instead of softmax attention.
  bool linear_mixer(std::int64_t layer) const { return linear.on() && linear.layers.at(std::min(layer, layers - 1)); }
  /// Whether an FFN or experts follow the layer's mixer.
  bool feeds_forward(std::int64_t layer) const { return ffn_layers.at(std::min(layer, layers - 1)); }
  std::int64_t moe_layers() const { return moe_layers_before(blocks()); }  ///< blocks with experts
  std::int64_t moe_layers_before(std::int64_t layer) const;                ///< blocks with experts before this one
  /// Whether FFNs and experts have a gate.
  bool gated() const { return activation != Activation::gelu && activation != Activation::gelu_tanh; }
  /// Whether the model has no rotary positions.
  bool no_rotation() const { return attention.alibi || learned_positions > 0; }
  /// Hidden width of the FFN for every token of the layer: dense FFN or shared experts; 0 = none.
  std::int64_t ffn_width(std::int64_t layer) const {
    return !feeds_forward(layer) ? 0 : moe(layer) ? shared_ffn : experts > 0 ? dense_ffn : ffn;
  }
  /// Rows of the first projection: gate and up, or up alone.
  std::int64_t ffn_rows(std::int64_t width) const { return (gated() ? 2 : 1) * width; }
  std::int64_t v_head_dim() const { return attention.mla.on() ? attention.mla.v_head_dim : head_dim; }
  std::int64_t rope_dim() const { return attention.mla.on() ? attention.mla.qk_rope_head_dim : head_dim; }
  std::int64_t expert_width() const { return moe_latent > 0 ? moe_latent : d_model; }  ///< of an expert's rows
  std::int64_t norm_parameters() const { return d_model * (norm_bias ? 2 : 1); }
  /// Rows of the projections with a bias, without the output projection; 0 = no biases.
  std::int64_t qkv_biases() const;
  /// The factor on q k products: 1 / sqrt(head_dim), with latent attention also that of scaled positions.
  double softmax_scale() const;

  // Parameter counts (elements), by FSDP group.
  std::int64_t attention_parameters() const;  ///< weights of the projections of one layer of softmax attention
  /// Weights of the projections of this layer's mixer.
  std::int64_t mixer_projections(std::int64_t layer) const {
    return linear_mixer(layer) ? linear.projections(d_model) : attention_parameters();
  }
  std::int64_t attention_biases() const;  ///< in addition to the weights
  /// One FFN or expert of that width, biases included.
  std::int64_t ffn_parameters(std::int64_t width) const;
  /// Attention, norms, router, and FFN or shared experts of one layer; for a module of multi-token prediction also its
  /// projection and norms.
  std::int64_t dense_parameters(std::int64_t layer) const;
  std::int64_t expert_parameters() const;     ///< one routed expert of one layer
  std::int64_t embedding_parameters() const;  ///< with learned positions; 0 where tied: the head counts them
  std::int64_t head_parameters() const;       ///< final norm + output projection
  std::int64_t total_parameters() const;      ///< with those of multi-token prediction
  std::int64_t active_parameters() const;     ///< a token's, as publishers count: all but the experts not chosen

  /// Mean number of keys that a query attends to in this layer, counted as an area: seq / 2 under a causal mask,
  /// window - window^2 / (2 seq) in a window, chunk / 2 in chunks.
  double mean_keys(std::int64_t layer, std::int64_t seq) const;
  /// Model FLOPs per token, forward and backward. Causal attention counts as half; the output projection counts, the
  /// input embedding and recompute do not: 6 * (weights used) + 6 * heads * (head_dim + v_head_dim) * sum of mean_keys.
  /// For DBRX this is 215.1 GFLOP + 0.001475 GFLOP * seq. Modules of multi-token prediction count with what they
  /// compute, linear mixers as three times their chunked products (LinearMixerSpec::flops).
  double flops_per_token(std::int64_t seq) const;
  /// Weights in a token's matrix products: attention, FFNs, the chosen experts, router and head.
  std::int64_t product_weights() const;

  /// Features of the model that our trainer lacks, in words; empty = it can be trained.
  std::vector<std::string> untrainable() const;

  /// Throws Error{usage} with `where` for impossible shapes. `names`: other words for our keys, for a file in another
  /// format; a key that is missing in it keeps its own name.
  void check(const std::string& where, const std::map<std::string, std::string>& names = {}) const;
};

ModelSpec model_from_yaml(YamlMap& map);
/// Writes a map for model_from_yaml, with peft_config if `lora` is given.
void model_to_yaml(const ModelSpec& model, YAML::Emitter& out, const LoraSpec* lora = nullptr);
/// Reads a Hugging Face config.json. Throws Error{usage} with the file, what it asks for and what is supported.
ModelSpec model_from_hugging_face(const std::filesystem::path& file);
/// Reads a parsed config.json; `file` is its name in errors. `asked` collects the keys that were looked up, with
/// slashes between levels.
ModelSpec model_from_hugging_face(const nlohmann::json& document, const std::string& file,
                                  std::set<std::string>* asked = nullptr);
/// The family whose config.json can express exactly this model ("mixtral"), and that config.json. Throw Error{usage}
/// where no family can.
std::string family_of(const ModelSpec& model);
nlohmann::json config_json(const ModelSpec& model);
/// By extension: .json = Hugging Face, .yaml = ours. In a folder, config.json is read. Another name is a preset of
/// configs/models, or a repository of the Hub whose shape ships with Windtunnel (hub_models.hpp).
ModelSpec read_model(const std::string& name_or_file);
/// The file that read_model would read, where the name is no repository.
std::filesystem::path model_file(const std::string& name_or_file);
/// The repository that the name means; "" for a file or a preset. Throws Error{usage} with the nearest name if it is
/// nothing of these.
std::string model_repository(const std::string& name);
/// Reads the key `model` of a file: a map with our keys, or with those of a config.json if it has model_type, or a name
/// for read_model. `lora` receives the map's peft_config; without it that key is refused.
ModelSpec model_of(YamlMap& file, std::optional<LoraSpec>* lora = nullptr);

}  // namespace wt
