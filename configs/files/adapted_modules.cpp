#include "configs/files/adapted_modules.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <tuple>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/files/weight_names.hpp"

namespace wt {
namespace {

/// "q_proj" of "model.layers.0.self_attn.q_proj".
std::string last_name(const std::string& module) { return module.substr(module.rfind('.') + 1); }

/// The attention projections: our parameters attention.qkv and attention.output.
std::vector<AdaptedModule> projections(const ModelSpec& model) {
  const WeightNames names(model, family_of(model));
  const std::string end = ".weight";
  std::map<std::string, AdaptedModule> tensors;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const bool output : {false, true})
      for (const WeightPiece& piece :
           names.pieces(fmt::format("layers.{}.attention.{}.weight", layer, output ? "output" : "qkv"))) {
        const std::vector<std::int64_t>& shape = names.shapes().at(piece.tensor);
        tensors[piece.tensor] = {{shape.at(0), shape.at(1), layer, output},
                                 piece.tensor.substr(0, piece.tensor.size() - end.size())};
      }
  return mapped(std::views::values(tensors));
}

/// Adapters need separate q, k, v and output projections in every block.
void check_adaptable(const ModelSpec& model) {
  const char* found = model.attention.mla.on() ? "latent attention"
                      : model.linear.on()      ? "linear mixers"
                      : model.mtp_layers > 0   ? "multi-token prediction"
                                               : nullptr;
  if (found)
    throw_usage("model {}: found {}, allowed are adapters beside projections of q, k, v and output", model.name, found);
}

}  // namespace

std::vector<AdaptedModule> adapted_modules(const ModelSpec& model, const LoraSpec& spec) {
  check_adaptable(model);
  const std::vector<AdaptedModule> all = projections(model);
  std::set<std::string> known;
  for (const AdaptedModule& module : all) known.insert(last_name(module.name));
  for (const std::string& target : spec.target_modules) {
    const LoraSpec one{.rank = spec.rank, .alpha = spec.alpha, .target_modules = {target}};
    if (std::ranges::none_of(all, [&](const AdaptedModule& module) { return one.targets(module.name); }))
      throw_usage(
          "target_modules: found {}, the projections of attention in a model of family {} are {}; name some of these",
          target, family_of(model), fmt::join(known, ", "));
  }
  std::vector<AdaptedModule> out;
  for (const AdaptedModule& module : all)
    if (spec.targets(module.name)) out.push_back(module);
  return out;
}

std::int64_t AdapterShape::elements(std::int64_t layer) const {
  return rank * sum_of(products, [&](const AdaptedProduct& p) { return p.layer == layer ? p.out + p.in : 0; });
}

std::int64_t AdapterShape::elements() const {
  return rank * sum_of(products, [](const AdaptedProduct& p) { return p.out + p.in; });
}

double flops_per_token(const ModelSpec& model, const std::optional<AdapterShape>& adapters, std::int64_t seq) {
  const double all = model.flops_per_token(seq);
  if (!adapters) return all;
  return all - 2.0 * static_cast<double>(model.product_weights()) + 6.0 * static_cast<double>(adapters->elements());
}

bool AdapterShape::alike(std::int64_t a, std::int64_t b) const {
  const auto of = [this](std::int64_t layer) {
    std::vector<std::tuple<std::int64_t, std::int64_t, bool>> out;
    for (const AdaptedProduct& each : products)
      if (each.layer == layer) out.emplace_back(each.out, each.in, each.output);
    return out;
  };
  return a == b || of(a) == of(b);
}

AdapterShape adapter_shape(const ModelSpec& model, const LoraSpec& spec) {
  AdapterShape out{spec.rank, {}};
  for (const AdaptedModule& module : adapted_modules(model, spec)) out.products.push_back(module);
  std::ranges::stable_sort(out.products, {}, &AdaptedProduct::layer);
  return out;
}

}  // namespace wt
