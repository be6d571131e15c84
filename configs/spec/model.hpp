// The shape of a decoder-only MoE transformer (RMSNorm, rotary grouped-query attention, SwiGLU experts), read from our
// YAML or from a Hugging Face config.json of the DBRX, Mixtral, OLMoE and Qwen3-MoE families.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace wt {

class YamlMap;

struct ModelSpec {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t d_model = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;      ///< hidden width of one expert (gate, up and down projections)
  std::int64_t experts = 0;  ///< routed experts a layer
  std::int64_t top_k = 0;
  std::int64_t vocab = 0;
  double rope_theta = 10000.0;
  double norm_eps = 1e-5;
  bool normalize_top_k = true;  ///< divide the chosen router weights by their sum
  double aux_loss_weight = 0.01;
  double z_loss_weight = 0.0;
  std::string source;  ///< file or citation

  // Parameter counts (elements), by FSDP group.
  std::int64_t attention_parameters() const;  ///< q, k, v, o of one layer
  std::int64_t dense_parameters() const;      ///< attention + two norms + router of one layer
  std::int64_t expert_parameters() const;     ///< one expert of one layer
  std::int64_t embedding_parameters() const;
  std::int64_t head_parameters() const;       ///< final norm + output projection (never tied)
  std::int64_t total_parameters() const;
  std::int64_t active_parameters() const;     ///< per token: all but the experts not chosen

  /// Model FLOPs a token, forward and backward, causal attention counted as half, output projection in, input
  /// embedding out, no recompute: 6 * (weights used) + 6 * layers * heads * head_dim * seq. For DBRX this is
  /// 215.1 GFLOP + 0.001475 GFLOP * seq.
  double flops_per_token(std::int64_t seq) const;

  /// Throws Error{usage} on impossible shapes, naming `where`.
  void check(const std::string& where) const;
};

ModelSpec model_from_yaml(YamlMap& map);
/// Hugging Face config.json; throws Error{usage} naming the file, the model_type found and those read.
ModelSpec model_from_hugging_face(const std::filesystem::path& file);
/// By extension: .json = Hugging Face, .yaml = ours; a bare name is looked up in configs/models.
ModelSpec read_model(const std::string& name_or_file);

}  // namespace wt
