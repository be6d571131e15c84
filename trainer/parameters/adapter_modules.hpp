// Which modules of a model an adapter's target_modules name.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/spec/lora.hpp"
#include "configs/spec/model.hpp"

namespace wt {

/// A projection of attention with its weight (out, in), named as its family's modeling code in transformers does:
/// "model.layers.0.self_attn.q_proj", "transformer.blocks.0.norm_attn_norm.attn.Wqkv".
struct AdaptedModule {
  std::string name;
  std::int64_t out = 0, in = 0;
};

/// Those that the adapter names, in the order of their names. Throws Error{usage}: a family whose names are not known,
/// latent attention, a target that names no projection of attention (with those that there are).
std::vector<AdaptedModule> adapted_modules(const ModelSpec& model, const LoraSpec& spec);

}  // namespace wt
