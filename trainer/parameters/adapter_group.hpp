// The parameter group of an adapter: the factors of all layers in one flat sequence, complete on every rank. All other
// groups are then frozen.
#pragma once
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/parameters/weights.hpp"
#include "trainer/safetensors/adapter.hpp"

namespace wt {

/// The rows of our parameter that hold an adapted module's weight (out, in), from row `first` on.
struct AdaptedRows {
  std::string module;  ///< "model.layers.0.self_attn.q_proj"
  std::int64_t layer = 0;
  std::string product;  ///< our parameter's name in the block, without ".weight": "attention.qkv"
  std::int64_t first = 0, in = 0;
  std::vector<std::int64_t> theirs;  ///< for each of our rows, the module's row
  std::int64_t out() const { return static_cast<std::int64_t>(theirs.size()); }
  /// Name of a factor in the group: "layers.0.attention.qkv.lora.q_proj.A".
  std::string factor(const char* which) const;
};

/// In the order of the group: by layer, product and row. Throws Error{usage} as adapted_modules() does.
std::vector<AdaptedRows> adapted_rows(const ModelSpec& model, const LoraSpec& lora);

/// For each module A (r, in), initialised like PEFT's, and B (out, r) of zeros, whose rows are in our order. Every
/// parameter is a leaf.
GroupLayout adapter_layout(const ModelSpec& model, const LoraSpec& lora);

/// Adds the leaves of `factors`, a slot of the adapter's group, to each layer's slot, next to the adapted products.
void attach_adapter(std::vector<Slot>& layers, const Slot& factors, const ModelSpec& model, const LoraSpec& lora);

/// Copies the group's factors to the host, under PEFT's names; `base`: name of the base weights.
Adapter adapter_from(const ShardedGroup& group, const ModelSpec& model, const LoraSpec& lora, const std::string& base);
/// Throws Error{usage} with `origin` where the adapter's rank, alpha or modules differ from the run's.
void check_adapter(const Adapter& adapter, const ModelSpec& model, const LoraSpec& lora, const std::string& origin);
/// The inverse of adapter_from, for a checked adapter: fills the group's masters.
void fill_from_adapter(ShardedGroup& group, const Adapter& adapter, const ModelSpec& model, const LoraSpec& lora);

}  // namespace wt
