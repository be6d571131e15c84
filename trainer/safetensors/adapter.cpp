#include "trainer/safetensors/adapter.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "configs/base/atomic_file.hpp"
#include "configs/base/error.hpp"
#include "configs/base/json_reader.hpp"
#include "configs/files/limits.hpp"
#include "trainer/safetensors/pretrained_files.hpp"
#include "trainer/safetensors/safetensors.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kTensors = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";

/// Ignored keys: the adapter's origin, or details of features that our adapters do not have.
constexpr const char* kIgnoredKeys[] = {"base_model_name_or_path", "revision",         "inference_mode", "peft_version",
                                        "megatron_core",           "qalora_group_size"};

/// null, false, an empty map or list: PEFT's values for "not used".
bool unused(const json& value) {
  return value.is_null() || value == false ||
         ((value.is_object() || value.is_array() || value.is_string()) && value.empty());
}

std::vector<float> finite_values(const StoredTensor& tensor, const std::string& origin) {
  std::vector<float> out = widened_values(tensor, origin);
  for (const float value : out)
    if (!std::isfinite(value))
      throw_usage("{}: found a value that is not finite; the adapter is damaged or has diverged", origin);
  return out;
}

/// MODULE from "base_model.model.MODULE.lora_A.weight"; "" if it is not such a factor.
std::string module_of(const std::string& tensor, std::string_view factor) {
  if (!tensor.starts_with(kPrefix) || !tensor.ends_with(factor) || tensor.size() <= kPrefix.size() + factor.size())
    return "";
  return tensor.substr(kPrefix.size(), tensor.size() - kPrefix.size() - factor.size());
}

}  // namespace

json adapter_config(const LoraSpec& spec, const std::string& base) {
  return {{"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"base_model_name_or_path", base.empty() ? json() : json(base)},
          {"r", spec.rank},
          {"lora_alpha", spec.alpha},
          {"lora_dropout", 0.0},
          {"target_modules", spec.target_modules},
          {"bias", "none"},
          {"fan_in_fan_out", false},
          {"init_lora_weights", true},
          {"inference_mode", true}};
}

LoraSpec lora_of_adapter_config(const json& config, const std::string& origin) {
  const JsonReader at(config, origin);
  LoraSpec out;
  at.at("peft_type");
  for (const auto& [key, value] : at.items()) {
    const auto only = [&read = value](const char* word) {
      if (read.value() != word) read.fail(read.value().dump(), std::string("\"") + word + "\"");
    };
    if (key == "peft_type") {
      only("LORA");
    } else if (key == "task_type") {
      only("CAUSAL_LM");
    } else if (key == "bias") {
      only("none");
    } else if (key == "r") {
      out.rank = value.integer();
      if (out.rank < 1 || out.rank > limits::kWidth)
        value.fail(std::to_string(out.rank), fmt::format("1 to {}", limits::kWidth));
    } else if (key == "lora_alpha") {
      out.alpha = value.finite();
      if (!(out.alpha > 0)) value.fail(value.value().dump(), "a number above 0");
    } else if (key == "lora_dropout") {
      value.non_negative();  // only used in training
    } else if (key == "target_modules") {
      if (!value.value().is_array()) value.fail(value.value().dump(), "a list of modules' names");
      for (const JsonReader& each : value.elements()) out.target_modules.push_back(each.string());
    } else if (key == "init_lora_weights") {
      // Other initialisations change the base's weights, so that the named base no longer fits.
      if (!value.value().is_boolean() && value.value() != "gaussian")
        value.fail(value.value().dump(), "true, false and \"gaussian\"");
    } else if (std::ranges::find(kIgnoredKeys, key) == std::end(kIgnoredKeys) && !unused(value.value())) {
      value.fail(value.value().dump(), "nothing: adapters are factors of one rank and one alpha beside frozen weights");
    }
  }
  if (out.target_modules.empty()) throw_usage("{}: found no target_modules, needs a list of modules' names", origin);
  return out;
}

void write_adapter(const fs::path& folder, const Adapter& adapter) {
  std::vector<OutgoingTensor> tensors;
  const std::int64_t r = adapter.spec.rank;
  for (const auto& [module, factors] : adapter.modules) {
    const std::string name = std::string(kPrefix) + module;
    tensors.push_back({name + std::string(kA), "F32", {r, factors.in}, factors.a.data(), {}});
    tensors.push_back({name + std::string(kB), "F32", {factors.out, r}, factors.b.data(), {}});
  }
  fs::create_directories(folder);
  write_safetensors(folder / kTensors, tensors);
  write_file_atomically(folder / kConfig, adapter_config(adapter.spec, adapter.base).dump(2) + "\n");
}

Adapter read_adapter(const fs::path& folder) {
  Adapter out;
  const json config = read_json(folder / kConfig);
  out.spec = lora_of_adapter_config(config, (folder / kConfig).string());
  if (const auto base = config.find("base_model_name_or_path"); base != config.end() && base->is_string())
    out.base = base->get<std::string>();
  const fs::path file = folder / kTensors;
  for (const auto& [name, tensor] : read_safetensors(file).tensors) {
    const std::string origin = file.string() + ": " + name, of_a = module_of(name, kA), of_b = module_of(name, kB);
    const std::string& module = of_a.empty() ? of_b : of_a;
    if (module.empty())
      throw_usage("{}: found no factor, allowed are names as {}MODULE{} and {}", origin, kPrefix, kA, kB);
    if (!out.spec.targets(module))
      throw_usage("{}: {} is none of target_modules; config and tensors are of different adapters", origin, module);
    const std::size_t of_rank = of_a.empty() ? 1 : 0;
    if (tensor.shape.size() != 2 || tensor.shape[of_rank] != out.spec.rank || tensor.shape[1 - of_rank] < 1)
      throw_usage("{}: found a shape of {} dims, needs {} with r = {}", origin, tensor.shape.size(),
                  of_a.empty() ? "(out, r)" : "(r, in)", out.spec.rank);
    LoraFactors& factors = out.modules[module];
    (of_a.empty() ? factors.out : factors.in) = tensor.shape[1 - of_rank];
    (of_a.empty() ? factors.b : factors.a) = finite_values(tensor, origin);
  }
  for (const auto& [module, factors] : out.modules)
    if (factors.a.empty() || factors.b.empty())
      throw_usage("{}: {} has one factor, needs lora_A and lora_B; the file is incomplete", file.string(), module);
  if (out.modules.empty()) throw_usage("{}: found no factors, needs those of an adapter", file.string());
  return out;
}

void merge_factors(std::span<float> weight, const LoraFactors& factors, double scale) {
  const std::size_t in = static_cast<std::size_t>(factors.in), out = static_cast<std::size_t>(factors.out);
  const std::size_t r = factors.a.size() / in;
  std::vector<double> row(in);
  for (std::size_t o = 0; o < out; ++o) {
    std::ranges::fill(row, 0.0);
    for (std::size_t k = 0; k < r; ++k)
      for (std::size_t i = 0; i < in; ++i)
        row[i] += static_cast<double>(factors.b[o * r + k]) * static_cast<double>(factors.a[k * in + i]);
    for (std::size_t i = 0; i < in; ++i)
      weight[o * in + i] = static_cast<float>(static_cast<double>(weight[o * in + i]) + scale * row[i]);
  }
}

}  // namespace wt
