#include "trainer/parameters/adapter_modules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "configs/spec/support/atomic_file.hpp"
#include "configs/spec/support/error.hpp"
#include "configs/spec/support/text.hpp"
#include "trainer/parameters/weight_names.hpp"
#include "trainer/safetensors/adapter.hpp"
#include "trainer/safetensors/pretrained_files.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeight = ".weight";

/// "q_proj" of "model.layers.0.self_attn.q_proj".
std::string last_name(const std::string& module) { return module.substr(module.rfind('.') + 1); }

/// The projections of attention: parts of our parameters attention.qkv and attention.output.
std::vector<AdaptedModule> projections(const ModelSpec& model) {
  const WeightNames names(model, family_of(model));
  std::set<std::string> tensors;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const char* part : {"qkv", "output"})
      for (const WeightPiece& piece : names.pieces(fmt::format("layers.{}.attention.{}.weight", layer, part)))
        tensors.insert(piece.tensor);
  std::vector<AdaptedModule> out;
  for (const std::string& tensor : tensors) {
    const std::vector<std::int64_t>& shape = names.shapes().at(tensor);
    out.push_back({tensor.substr(0, tensor.size() - kWeight.size()), shape.at(0), shape.at(1)});
  }
  return out;
}

}  // namespace

std::vector<AdaptedModule> adapted_modules(const ModelSpec& model, const LoraSpec& spec) {
  if (model.attention.mla.on())
    throw_error(Code::usage,
                "model {}: found latent attention, allowed are adapters beside projections of q, k, v and output",
                model.name);
  const std::vector<AdaptedModule> all = projections(model);
  std::set<std::string> known;
  for (const AdaptedModule& module : all) known.insert(last_name(module.name));
  for (const std::string& target : spec.target_modules) {
    const LoraSpec one{.rank = spec.rank, .alpha = spec.alpha, .target_modules = {target}};
    if (std::none_of(all.begin(), all.end(), [&](const AdaptedModule& module) { return one.targets(module.name); }))
      throw_error(Code::usage,
                  "target_modules: found {}, the projections of attention in a model of family {} are {}; name some of "
                  "these",
                  target, family_of(model), fmt::join(known, ", "));
  }
  std::vector<AdaptedModule> out;
  for (const AdaptedModule& module : all)
    if (spec.targets(module.name)) out.push_back(module);
  return out;
}

void merge_adapter(const fs::path& weights, const fs::path& adapter_folder, const fs::path& to) {
  const Adapter adapter = read_adapter(adapter_folder);
  std::map<std::string, StoredTensor> stored = pretrained_tensors(weights);
  for (const auto& [module, factors] : adapter.modules) {
    const auto found = stored.find(module + std::string(kWeight));
    if (found == stored.end())
      throw_error(Code::usage, "{}: found factors of {}, which {} has not; the adapter is of another model",
                  adapter_folder.string(), module, weights.string());
    if (found->second.shape != std::vector<std::int64_t>{factors.out, factors.in})
      throw_error(
          Code::usage,
          "{}: the factors of {} make ({}, {}), the weight in {} has another shape; the adapter is of another model",
          adapter_folder.string(), module, factors.out, factors.in, weights.string());
  }
  std::map<std::string, std::vector<float>> values;
  std::vector<OutgoingTensor> outgoing;
  for (const auto& [name, tensor] : stored) {
    std::vector<float>& own = values[name] = widened_values(tensor, weights.string() + ": " + name);
    const auto factors =
        adapter.modules.find(name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : "");
    if (factors != adapter.modules.end()) merge_factors(own, factors->second, adapter.spec.scale());
    outgoing.push_back({name, "F32", tensor.shape, own.data(), {}});
  }
  fs::create_directories(to);
  write_safetensors(to / "model.safetensors", outgoing);
  for (const char* name : {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
                           "special_tokens_map.json", "tokenizer.model"})
    if (fs::is_regular_file(weights / name))
      write_file_atomically(to / name, read_file(weights / name, "a file of weights"));
}

}  // namespace wt
