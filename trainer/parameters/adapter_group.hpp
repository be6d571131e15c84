// The group of an adapter's factors: all of them, of all layers, in one flat sequence, which every rank holds whole.
// All other groups are then frozen.
#pragma once
#include <string>
#include <vector>

#include "configs/files/run.hpp"
#include "trainer/parameters/weights.hpp"
#include "trainer/safetensors/adapter.hpp"

namespace wt {

/// Where an adapted module's weight (out, in) stands in our parameter: rows `first` and those behind it.
struct AdaptedRows {
  std::string module;  ///< "model.layers.0.self_attn.q_proj"
  std::int64_t layer = 0;
  std::string product;  ///< our parameter in the block, without ".weight": "attention.qkv"
  std::int64_t first = 0, in = 0;
  std::vector<std::int64_t> theirs;  ///< the module's row for each of ours
  std::int64_t out() const { return static_cast<std::int64_t>(theirs.size()); }
  /// Of its factors in the group: "layers.0.attention.qkv.lora.q_proj.A".
  std::string factor(const char* which) const;
};

/// In the order of the group: by layer, product and row. Throws Error{usage} as adapted_modules().
std::vector<AdaptedRows> adapted_rows(const ModelSpec& model, const LoraSpec& lora);

/// Of each module A (r, in), drawn as PEFT draws it, and B (out, r) of zeros, whose rows are in our order. Every
/// parameter is a leaf.
GroupLayout adapter_layout(const ModelSpec& model, const LoraSpec& lora);

/// Gives each layer's slot the leaves of `factors`, a slot of the adapter's group, beside the products that they adapt.
void attach_adapter(std::vector<Slot>& layers, const Slot& factors, const ModelSpec& model, const LoraSpec& lora);

/// The factors of the group, on the host, under PEFT's names; `base`: what the adapter is to be put on.
Adapter adapter_from(const ShardedGroup& group, const ModelSpec& model, const LoraSpec& lora, const std::string& base);
/// Throws Error{usage} naming `origin` where the adapter has another rank, alpha or other modules than the run says.
void check_adapter(const Adapter& adapter, const ModelSpec& model, const LoraSpec& lora, const std::string& origin);
/// The inverse of adapter_from, of one that was checked: fills the group's masters.
void fill_from_adapter(ShardedGroup& group, const Adapter& adapter, const ModelSpec& model, const LoraSpec& lora);

}  // namespace wt
