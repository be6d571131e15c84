#include "trainer/parameters/adapter_modules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/text.hpp"
#include "trainer/parameters/weight_names.hpp"

namespace wt {
namespace {

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

}  // namespace wt
