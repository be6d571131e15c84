#include "configs/files/precisions.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

using Format = NumberFormat;

constexpr std::array kFormats{"fp32", "tf32", "fp16", "bf16", "fp8", "fp8_blockwise", "mxfp8", "nvfp4"};

struct OperationClass {
  const char* key;
  Format Precisions::*format;
  bool state = false;  ///< the optimizer's state, independent of the compute type
  std::vector<Format> allowed = {Format::bf16, Format::fp8, Format::fp8_blockwise, Format::mxfp8, Format::nvfp4};
};

const std::vector<OperationClass>& operation_classes() {
  static const std::vector<Format> products{Format::fp16,          Format::bf16,  Format::fp8,
                                            Format::fp8_blockwise, Format::mxfp8, Format::nvfp4};
  static const std::vector<OperationClass> classes{
      {"forward", &Precisions::forward, false, products},
      {"input_gradients", &Precisions::input_gradients, false, products},
      {"weight_gradients", &Precisions::weight_gradients, false, products},
      {"attention", &Precisions::attention, false, {Format::bf16, Format::fp8}},
      {"dispatch", &Precisions::dispatch},
      {"gathered_weights", &Precisions::gathered_weights},
      {"master_weights", &Precisions::master_weights, true, {Format::fp32, Format::bf16}},
      {"moments", &Precisions::moments, true, {Format::fp32, Format::bf16, Format::fp8}}};
  return classes;
}

PrecisionRecipe recipe(const char* word, Format products) {
  Precisions p;
  p.forward = p.input_gradients = p.weight_gradients = products;
  return {word, Precision::bf16, p};
}

std::vector<std::string> recipe_words() { return mapped(precision_recipes(), &PrecisionRecipe::word); }

}  // namespace

std::string to_string(NumberFormat format) { return word_for(format, kFormats); }

double bytes_of(NumberFormat format) {
  // Scales: fp8_blockwise has one of fp32 for 128 values, mxfp8 one of E8M0 for 32, nvfp4 one of E4M3 for 16.
  constexpr std::array kBytes{4., 4., 2., 2., 1., 1 + 4. / 128, 1 + 1. / 32, 0.5 + 1. / 16};
  return kBytes[static_cast<std::size_t>(format)];
}

bool plain_precisions(Precision compute, const Precisions& precisions) {
  Precisions usual;
  usual.fp32_products = compute == Precision::fp32 ? Format::fp32 : precisions.fp32_products;
  return precisions == usual;
}

double share_of_compute(NumberFormat format) { return std::min(1.0, bytes_of(format) / bytes_of(Format::bf16)); }

const std::vector<PrecisionRecipe>& precision_recipes() {
  static const std::vector<PrecisionRecipe> recipes{{"fp32", Precision::fp32, {.fp32_products = Format::fp32}},
                                                    {"tf32", Precision::fp32},
                                                    recipe("amp_bf16", Format::bf16),
                                                    recipe("amp_fp16", Format::fp16),
                                                    recipe("amp_fp8", Format::fp8),
                                                    recipe("amp_fp8_blockwise", Format::fp8_blockwise),
                                                    recipe("amp_mxfp8", Format::mxfp8),
                                                    recipe("amp_nvfp4", Format::nvfp4)};
  return recipes;
}

const std::vector<std::string>& planned_precisions() {
  static const std::vector<std::string> words{"amp_bf16",  "amp_fp8",   "amp_fp8_blockwise",
                                              "amp_mxfp8", "amp_nvfp4", "fp32"};
  return words;
}

const PrecisionRecipe& precision_recipe(const std::string& word, const std::string& where) {
  const auto& all = precision_recipes();
  const auto found = std::ranges::find_if(all, [&](const PrecisionRecipe& r) { return r.word == word; });
  if (found == all.end()) throw_usage("{}: found {}, allowed are {}", where, word, fmt::join(recipe_words(), ", "));
  return *found;
}

PrecisionRecipe read_precisions(YamlMap& map) {
  PrecisionRecipe out = precision_recipe(map.choice("precision", recipe_words(), "fp32"), "precision");
  if (!map.has("precisions")) return out;
  YamlMap own = map.map("precisions");
  for (const OperationClass& each : operation_classes()) {
    if (!own.has(each.key)) continue;
    const std::string word =
        own.choice(each.key, mapped(each.allowed, [](Format format) { return to_string(format); }));
    if (!each.state && out.compute == Precision::fp32)
      own.fail(each.key, "found {} beside precision {}, allowed beside amp_bf16 and other amp_ words", word, out.word);
    out.precisions.*each.format = *enumerator_of<Format>(word, kFormats);
  }
  own.finish();
  return out;
}

void write_precisions(YAML::Emitter& out, Precision compute, const Precisions& precisions) {
  const auto& all = precision_recipes();
  const auto base = std::ranges::find_if(all, [&](const PrecisionRecipe& r) {
    return r.compute == compute && (compute == Precision::fp32 ? r.precisions.fp32_products == precisions.fp32_products
                                                               : r.precisions.forward == precisions.forward);
  });
  out << YAML::Key << "precision" << YAML::Value << base->word;
  std::vector<const OperationClass*> others;
  for (const OperationClass& each : operation_classes())
    if ((each.state || compute != Precision::fp32) && precisions.*each.format != base->precisions.*each.format)
      others.push_back(&each);
  if (others.empty()) return;
  out << YAML::Key << "precisions" << YAML::Value << YAML::BeginMap;
  for (const OperationClass* each : others)
    out << YAML::Key << each->key << YAML::Value << to_string(precisions.*(each->format));
  out << YAML::EndMap;
}

}  // namespace wt
