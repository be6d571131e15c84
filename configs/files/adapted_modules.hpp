// Which modules an adapter's target_modules select in a model, and the sizes of their factors.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/lora.hpp"
#include "configs/files/model.hpp"

namespace wt {

/// A matrix product of attention with a weight (out, in), and its layer.
struct AdaptedProduct {
  std::int64_t out = 0, in = 0, layer = 0;
  bool output = false;  ///< attention's output projection; otherwise q, k, v, or several of them fused
};

/// An attention projection, named as in its family's modeling code in transformers:
/// "model.layers.0.self_attn.q_proj", "transformer.blocks.0.norm_attn_norm.attn.Wqkv".
struct AdaptedModule : AdaptedProduct {
  std::string name;
};

/// The modules that the adapter targets, sorted by name. Throws Error{usage}: a family with unknown module names,
/// latent attention, linear mixers, multi-token prediction, or a target that matches no attention projection (the error
/// lists them).
std::vector<AdaptedModule> adapted_modules(const ModelSpec& model, const LoraSpec& spec);

/// The sizes that a LoraSpec adds to a model.
struct AdapterShape {
  std::int64_t rank = 0;
  std::vector<AdaptedProduct> products;  ///< ordered by layer
  /// Elements of both factors of all products of a layer: the sum of rank (out + in).
  std::int64_t elements(std::int64_t layer) const;
  std::int64_t elements() const;  ///< of all layers
  /// Whether two layers have the same factors.
  bool alike(std::int64_t a, std::int64_t b) const;
};

/// Model FLOPs per token, counted as ModelSpec::flops_per_token, where only the adapters are trained: a frozen weight
/// costs 4 (forward and the gradient of its input), a factor 6. Without adapters every weight costs 6.
double flops_per_token(const ModelSpec& model, const std::optional<AdapterShape>& adapters, std::int64_t seq);

/// Throws as adapted_modules.
AdapterShape adapter_shape(const ModelSpec& model, const LoraSpec& spec);

}  // namespace wt
