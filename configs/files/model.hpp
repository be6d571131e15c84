// The shape of a decoder-only transformer, dense or mixture of experts: the families DBRX, Mixtral, OLMoE, Qwen2/3-MoE,
// DeepSeek-V2/V3, Kimi-K2, GPT-OSS, Llama-4, GLM-4.5, MPT, Llama, Mistral, Qwen2 and Falcon. Read from our YAML or from
// a Hugging Face config.json.
//
// A layer is attention, then a feed-forward part: one FFN (dense layers), or routed experts and beside them an FFN that
// every token takes (shared experts). The first `dense_layers` layers of an MoE model may be dense, or those that a
// pattern says. Behind the layers may stand modules of multi-token prediction, which have a block each.
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
/// Of every FFN and expert: silu(gate) * up; (up + 1) * gate * sigmoid(1.702 * gate) with gate <= 7 and up in +-7
/// (GPT-OSS); gelu(up), by erf or by tanh (Hendrycks and Gimpel 2016, arXiv 1606.08415); gelu(gate) * up, likewise
/// (Shazeer 2020, arXiv 2002.05202).
enum class Activation { swiglu, clamped_swiglu, gelu, gelu_tanh, geglu, geglu_tanh };

/// Multi-head latent attention (DeepSeek-V2, section 2.1): keys and values are projected up from one low-rank vector a
/// token; a rotary part of the key is shared by the heads. ModelSpec::head_dim is then qk_nope + qk_rope.
struct MlaSpec {
  std::int64_t kv_lora_rank = 0;  ///< 0 = no MLA
  std::int64_t q_lora_rank = 0;   ///< 0 = queries in one projection
  std::int64_t qk_nope_head_dim = 0, qk_rope_head_dim = 0, v_head_dim = 0;
  bool on() const { return kv_lora_rank > 0; }
};

struct AttentionSpec {
  enum class QkNorm { none, head, full };  ///< norm of q and k: over each head (Qwen3), over the projection (OLMoE)
  enum class Parallel { none, one_norm, two_norms };  ///< attention and FFN both read the block's input (Falcon)
  /// Of the projections: none, of q, k and v (Qwen2), or of the output too (Llama's and Qwen3's attention_bias). With
  /// latent attention `all` means the products that read or write the residual stream: q_a, kv_a and the output.
  enum class Bias { none, qkv, all };
  QkNorm qk_norm = QkNorm::none;
  bool qk_layernorm = false;  ///< that norm is LayerNorm, with a bias where the model's norms have one; else RMSNorm
  Parallel parallel = Parallel::none;
  Bias bias = Bias::none;
  double clip_qkv = 0;  ///< q, k and v are clamped to +-clip_qkv after their projection; 0 = not
  bool alibi = false;   ///< linear biases (slopes as in Press et al. 2022) instead of rotary positions
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  MlaSpec mla;
  /// What a query of the layers in `local` sees: the last `window` keys, its own among them, or the earlier keys of its
  /// chunk of `chunk` tokens (Llama-4); 0 = all earlier keys. At most one of them is set.
  std::int64_t window = 0, chunk = 0;
  LayerPattern local;
  bool output_gate = false;  ///< sigmoid of a projection as wide as the queries, times the output (Qwen3-Next)
  bool sinks = false;        ///< one learned logit a head that takes part in every softmax (GPT-OSS)
  bool any_local() const { return window > 0 || chunk > 0; }
};

struct RouterSpec {
  enum class Score { softmax, sigmoid };
  /// For benchmarks: experts by turns, or drawn by Zipf's law (the same draw each step), whatever the scores say.
  enum class Forced { none, balanced, zipf };
  /// What a group of experts is worth: the sum of its two best scores (DeepSeek-V3), or its best (DeepSeek-V2).
  enum class GroupWorth { two_best, best };
  Score score = Score::softmax;
  bool normalize = true;    ///< divide the chosen weights by their sum
  double scale = 1.0;       ///< of the weights, after that
  std::int64_t groups = 1;  ///< experts in this many groups; only those of the best top_groups take part
  std::int64_t top_groups = 1;
  GroupWorth group_worth = GroupWorth::two_best;
  double aux_loss_weight = 0.01;
  bool aux_of_microbatch = false;  ///< that loss is of a rank's microbatch (MegaBlocks), not of each sequence
  double z_loss_weight = 0.0;
  double bias_update_rate = 0;  ///< loss-free balancing: step of the bias that choosing adds to scores; 0 = no bias
  /// Rows that an expert takes of one microbatch of one rank, in shares of the balanced number; more are dropped (their
  /// weight is 0, they are still moved and computed). 0 = dropless. Depends on the layout.
  double capacity_factor = 0;
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
  std::int64_t dense_layers =
      0;                     ///< first layers of an MoE model that have an FFN of width dense_ffn instead of experts
  LayerPattern moe_pattern;  ///< layers behind these that have experts
  std::int64_t dense_ffn = 0;
  LayerPattern ffn_layers;      ///< layers that have an FFN or experts; the others are a mixer alone (Nemotron-H)
  std::int64_t shared_ffn = 0;  ///< hidden width of all shared experts of a layer together; 0 = none
  bool ffn_bias = false;        ///< of FFNs and experts, after both products, and of the router (GPT-OSS)
  std::int64_t vocab = 0;
  /// Modules of multi-token prediction (DeepSeek-V3, section 2.2): each norms the last hidden state and the next
  /// token's embedding, projects both together to d_model, and has a block, a final norm and a loss through the shared
  /// head.
  std::int64_t mtp_layers = 0;
  double mtp_loss_weight = 0.3;  ///< of the mean of their losses in the total (DeepSeek-V3, section 4.2)
  Activation activation = Activation::swiglu;
  Norm norm = Norm::rmsnorm;
  bool norm_bias = false;  ///< layernorm only
  double norm_eps = 1e-5;
  bool tied = false;  ///< the output projection is the embedding
  /// Learned positions, each a vector added to the embedding, in place of rotary ones; the longest sequence. 0 = none.
  std::int64_t learned_positions = 0;
  AttentionSpec attention;
  LinearMixerSpec linear;
  RouterSpec router;
  std::string source;  ///< file or citation
  /// Features by name that our trainer has not and that change no size here, so that the model is only simulated.
  std::vector<std::string> simulated_only;

  /// Blocks: the layers, and behind them those of multi-token prediction, which are as the last layer.
  std::int64_t blocks() const { return layers + mtp_layers; }
  bool mtp(std::int64_t layer) const { return layer >= layers; }
  bool moe(std::int64_t layer) const {
    layer = std::min(layer, layers - 1);
    return experts > 0 && layer >= dense_layers && moe_pattern.at(layer) && ffn_layers.at(layer);
  }
  bool local_attention(std::int64_t layer) const {
    return attention.any_local() && attention.local.at(std::min(layer, layers - 1));
  }
  /// The layer's mixer is the linear one, not softmax attention.
  bool linear_mixer(std::int64_t layer) const { return linear.on() && linear.layers.at(std::min(layer, layers - 1)); }
  /// The layer has an FFN or experts behind its mixer.
  bool feeds_forward(std::int64_t layer) const { return ffn_layers.at(std::min(layer, layers - 1)); }
  std::int64_t moe_layers() const { return moe_layers_before(blocks()); }  ///< blocks with experts
  std::int64_t moe_layers_before(std::int64_t layer) const;                ///< those of them before this one
  /// FFNs and experts have a gate.
  bool gated() const { return activation != Activation::gelu && activation != Activation::gelu_tanh; }
  /// Of rotary positions nothing is turned.
  bool no_rotation() const { return attention.alibi || learned_positions > 0; }
  /// Hidden width of the FFN that every token of the layer takes: dense FFN or shared experts; 0 = none.
  std::int64_t ffn_width(std::int64_t layer) const {
    return !feeds_forward(layer) ? 0 : moe(layer) ? shared_ffn : experts > 0 ? dense_ffn : ffn;
  }
  /// Rows of the first projection: gate and up, or up alone.
  std::int64_t ffn_rows(std::int64_t width) const { return (gated() ? 2 : 1) * width; }
  std::int64_t v_head_dim() const { return attention.mla.on() ? attention.mla.v_head_dim : head_dim; }
  std::int64_t rope_dim() const { return attention.mla.on() ? attention.mla.qk_rope_head_dim : head_dim; }
  std::int64_t norm_parameters() const { return d_model * (norm_bias ? 2 : 1); }
  /// Rows of the projections that have a bias, the output's left out; 0 = none has.
  std::int64_t qkv_biases() const;
  /// What products of q and k are multiplied by: 1 / sqrt(head_dim), and what scaled positions do to latent attention.
  double softmax_scale() const;

  // Parameter counts (elements), by FSDP group.
  std::int64_t attention_parameters() const;  ///< weights of the projections of one layer of softmax attention
  /// Weights of the projections of this layer's mixer.
  std::int64_t mixer_projections(std::int64_t layer) const {
    return linear_mixer(layer) ? linear.projections(d_model) : attention_parameters();
  }
  std::int64_t attention_biases() const;  ///< beside them
  /// Of one FFN or expert of that width, its biases in.
  std::int64_t ffn_parameters(std::int64_t width) const;
  /// Attention, norms, router, FFN or shared experts of one layer; of a module of multi-token prediction its projection
  /// and norms, too.
  std::int64_t dense_parameters(std::int64_t layer) const;
  std::int64_t expert_parameters() const;     ///< one routed expert of one layer
  std::int64_t embedding_parameters() const;  ///< with learned positions; 0 where tied: the head's group has them
  std::int64_t head_parameters() const;       ///< final norm + output projection
  std::int64_t total_parameters() const;      ///< with those of multi-token prediction

  /// Keys that a query of a sequence of `seq` meets in this layer, in the mean and counted as an area: seq / 2 under a
  /// causal mask alone, window - window^2 / (2 seq) in a window, chunk / 2 in chunks.
  double mean_keys(std::int64_t layer, std::int64_t seq) const;
  /// Model FLOPs a token, forward and backward, causal attention counted as half, output projection in, input
  /// embedding out, no recompute: 6 * (weights used) + 6 * heads * (head_dim + v_head_dim) * sum of mean_keys. For DBRX
  /// this is 215.1 GFLOP + 0.001475 GFLOP * seq. Modules of multi-token prediction count as what they compute,
  /// linear mixers as three times their chunked products (LinearMixerSpec::flops).
  double flops_per_token(std::int64_t seq) const;
  /// Weights that a token is multiplied by in products: of attention, FFNs, the experts chosen, router and head.
  std::int64_t product_weights() const;

  /// What of this model our trainer has not, in words; empty = it trains.
  std::vector<std::string> untrainable() const;

  /// Throws Error{usage} on impossible shapes, naming `where`.
  /// `names` are the words for our keys in a file of another format; a key without one keeps its own.
  void check(const std::string& where, const std::map<std::string, std::string>& names = {}) const;
};

ModelSpec model_from_yaml(YamlMap& map);
/// The map that model_from_yaml reads back to the same model.
/// With an adapter it gets its peft_config.
void model_to_yaml(const ModelSpec& model, YAML::Emitter& out, const LoraSpec* lora = nullptr);
/// Hugging Face config.json; throws Error{usage} naming the file, what it asks for and what is read.
ModelSpec model_from_hugging_face(const std::filesystem::path& file);
/// The same of a document that stands in `file`. `asked` gets the keys that were looked for, with slashes between
/// levels.
ModelSpec model_from_hugging_face(const nlohmann::json& document, const std::string& file,
                                  std::set<std::string>* asked = nullptr);
/// The family whose config.json can say exactly this model ("mixtral"), and that config.json. Throw Error{usage} where
/// none can.
std::string family_of(const ModelSpec& model);
nlohmann::json config_json(const ModelSpec& model);
/// By extension: .json = Hugging Face, .yaml = ours; a folder is looked into for config.json; a bare name is looked up
/// in configs/models.
ModelSpec read_model(const std::string& name_or_file);
/// The file that read_model reads.
std::filesystem::path model_file(const std::string& name_or_file);
/// A file's `model`: a map of its own, with our keys or, where it has model_type, those of a config.json; or what
/// read_model takes.
/// `lora` gets what the map has under peft_config; without it that key is none.
ModelSpec model_of(YamlMap& file, std::optional<LoraSpec>* lora = nullptr);

}  // namespace wt
