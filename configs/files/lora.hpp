// Low-rank adapters (Hu et al. 2021): a frozen weight W (out, in) acts as W + (alpha / r) B A, with B (out, r) and A
// (r, in).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

struct LoraSpec {
  std::int64_t rank = 8;                    ///< r
  double alpha = 8;                         ///< lora_alpha
  std::vector<std::string> target_modules;  ///< ends of module names: "q_proj", "self_attn.q_proj"
  double scale() const { return alpha / static_cast<double>(rank); }
  /// PEFT's rule: the module's name is a target, or ends with a dot and a target.
  bool targets(const std::string& module) const;
  friend bool operator==(const LoraSpec&, const LoraSpec&) = default;
};

/// `model.peft_config` as LLM Foundry has it, with PEFT's defaults: peft_type, task_type, r, lora_alpha, lora_dropout,
/// target_modules, bias. Throws Error{usage}: other kinds of adapters, dropout, trained biases, no modules, and keys
/// that change what an adapter is (use_dora, use_rslora, rank_pattern, alpha_pattern, modules_to_save).
LoraSpec read_peft_config(YamlMap at);
/// Writes the keys for read_peft_config into an open map.
void write_peft_config(YAML::Emitter& out, const LoraSpec& spec);

}  // namespace wt
