// Adapters in PEFT's format: a folder with adapter_config.json and adapter_model.safetensors.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "configs/files/lora.hpp"

namespace wt {

/// The two factors for one module's weight (out, in), fp32, in C order.
struct LoraFactors {
  std::int64_t out = 0, in = 0;
  std::vector<float> a;  ///< (r, in)
  std::vector<float> b;  ///< (out, r)
};

struct Adapter {
  LoraSpec spec;
  std::string base;                            ///< base_model_name_or_path; "" = not given
  std::map<std::string, LoraFactors> modules;  ///< by name: "model.layers.0.self_attn.q_proj"
};

/// adapter_config.json with the keys that peft 0.21.2 requires.
nlohmann::json adapter_config(const LoraSpec& spec, const std::string& base);

/// Throws Error{usage} with file and key: another kind of adapter (use_dora, use_rslora, rank_pattern, alpha_pattern,
/// modules_to_save, target_parameters, ...), or an unknown key with a value.
LoraSpec lora_of_adapter_config(const nlohmann::json& config, const std::string& origin);

/// Throws Error{runtime} where writing fails.
void write_adapter(const std::filesystem::path& folder, const Adapter& adapter);

/// Reads factors in F32, F16 or BF16. Throws Error{usage} as above, and for: tensors that are not factors, a factor
/// without its counterpart, inconsistent ranks and shapes, a module that is not in target_modules, a value that is not
/// finite.
Adapter read_adapter(const std::filesystem::path& folder);

/// weight (out, in) += scale * B A, summed in fp64.
void merge_factors(std::span<float> weight, const LoraFactors& factors, double scale);

}  // namespace wt
