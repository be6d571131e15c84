// Which modules of a model an adapter's target_modules name, and how large their factors are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/files/lora.hpp"
#include "configs/files/model.hpp"

namespace wt {

/// A product of attention with a weight (out, in), and the layer that it is in.
struct AdaptedProduct {
  std::int64_t out = 0, in = 0, layer = 0;
  bool output = false;  ///< attention's output projection; else q, k, v, or several of them
};

/// A projection of attention, named as its family's modeling code in transformers does:
/// "model.layers.0.self_attn.q_proj", "transformer.blocks.0.norm_attn_norm.attn.Wqkv".
struct AdaptedModule : AdaptedProduct {
  std::string name;
};

/// Those that the adapter names, in the order of their names. Throws Error{usage}: a family whose names are not known,
/// latent attention, linear mixers, multi-token prediction, a target that names no projection of attention (with those
/// that there are).
std::vector<AdaptedModule> adapted_modules(const ModelSpec& model, const LoraSpec& spec);

/// What a LoraSpec adds to a model, as sizes alone.
struct AdapterShape {
  std::int64_t rank = 0;
  std::vector<AdaptedProduct> products;  ///< by layer
  /// Of both factors of the products of one layer: the sum of rank (out + in).
  std::int64_t elements(std::int64_t layer) const;
  std::int64_t elements() const;  ///< of all layers
  /// Whether two layers have the same factors.
  bool alike(std::int64_t a, std::int64_t b) const;
};

/// Model FLOPs a token, as ModelSpec::flops_per_token counts them, where the adapters alone are trained: frozen weights
/// count 4, forward and the gradient of their input, and factors 6. Without adapters all weights count 6.
double flops_per_token(const ModelSpec& model, const std::optional<AdapterShape>& adapters, std::int64_t seq);

/// Throws as adapted_modules.
AdapterShape adapter_shape(const ModelSpec& model, const LoraSpec& spec);

}  // namespace wt
