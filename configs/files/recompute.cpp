#include "configs/files/recompute.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "configs/base/parsed.hpp"
#include "configs/base/yaml.hpp"
#include "configs/files/recompute_mask.hpp"

namespace wt {
namespace {

struct ModuleWord {
  Module module;
  const char* word;
  bool LayerRecompute::*flag;
};
constexpr std::array kModules{ModuleWord{Module::block, "block", &LayerRecompute::block},
                              ModuleWord{Module::attention, "attention", &LayerRecompute::attention},
                              ModuleWord{Module::experts, "experts", &LayerRecompute::experts},
                              ModuleWord{Module::norm, "norm", &LayerRecompute::norm},
                              ModuleWord{Module::core, "core", &LayerRecompute::core},
                              ModuleWord{Module::products, "products", &LayerRecompute::products},
                              ModuleWord{Module::moe, "moe", &LayerRecompute::moe},
                              ModuleWord{Module::moe_act, "moe_act", &LayerRecompute::moe_act},
                              ModuleWord{Module::mla_up_proj, "mla_up_proj", &LayerRecompute::mla_up_proj},
                              ModuleWord{Module::mlp, "mlp", &LayerRecompute::mlp},
                              ModuleWord{Module::shared_experts, "shared_experts", &LayerRecompute::shared_experts}};
/// A module and a part of it.
constexpr std::array kParts{
    std::pair{Module::attention, Module::core},  std::pair{Module::attention, Module::mla_up_proj},
    std::pair{Module::experts, Module::moe_act}, std::pair{Module::moe, Module::experts},
    std::pair{Module::moe, Module::moe_act},     std::pair{Module::moe, Module::shared_experts}};
constexpr std::array kCompressions{"none", "int8", "fp8"};
constexpr std::array kBlockKinds{"first", "last", "middle", "range", "chunk", "every"};
const char* const kBlockWords = "allowed first-n, last-n, middle-n, chunk-n, every-n, range-i-j with i < j";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out{""};
  for (char c : text) {
    if (c == separator)
      out.emplace_back();
    else if (c != ' ')
      out.back() += c;
  }
  return out;
}

/// A whole number >= 0, or -1.
std::int64_t number(const std::string& text) { return parsed<std::int64_t>(text).value_or(-1); }

Recompute::Blocks blocks_from_string(const std::string& word) {
  using Which = Recompute::Blocks::Which;
  const std::vector<std::string> parts = split(word, '-');
  const auto which = enumerator_of<Which>(parts[0], kBlockKinds);
  if (parts.size() == 2 && which && which != Which::range && number(parts[1]) > 0) return {*which, number(parts[1]), 0};
  if (parts.size() == 3 && which == Which::range && number(parts[1]) >= 0 && number(parts[2]) > number(parts[1]))
    return {Which::range, number(parts[1]), number(parts[2])};
  throw_usage("recompute: blocks: found '{}', {}", word, kBlockWords);
}

std::string to_string(const Recompute::Blocks& blocks) {
  const std::string name = word_for(blocks.which, kBlockKinds);
  if (blocks.which == Recompute::Blocks::Which::range) return fmt::format("{}-{}-{}", name, blocks.a, blocks.b);
  return fmt::format("{}-{}", name, blocks.a);
}

std::string text_of(const std::vector<Recompute::Blocks>& blocks) {
  return joined(blocks, ",", [](const Recompute::Blocks& one) { return to_string(one); });
}

/// Half-open range of blocks, counted as in LLM Foundry (llmfoundry/models/utils/act_ckpt.py, parse_ele_str).
std::pair<std::int64_t, std::int64_t> extent(const Recompute::Blocks& blocks, std::int64_t layers) {
  using Which = Recompute::Blocks::Which;
  switch (blocks.which) {
    case Which::first:
      return {0, std::min(blocks.a, layers)};
    case Which::last:
      return {std::max<std::int64_t>(layers - blocks.a, 0), layers};
    case Which::middle: {
      const std::int64_t start = std::max<std::int64_t>((layers - 1) / 2 - blocks.a / 2, 0);
      return {start, std::min(start + blocks.a, layers)};
    }
    case Which::chunk:
    case Which::every:  // depends on the chunks
      return {0, layers};
    case Which::range:
      break;
  }
  return {blocks.a, std::min(blocks.b, layers)};
}

/// Index of the layer in its chunk.
std::int64_t in_chunk(std::int64_t layer, const std::vector<std::int64_t>& chunk_layers) {
  for (const std::int64_t chunk : chunk_layers) {
    if (layer < chunk) break;
    layer -= chunk;
  }
  return layer;
}

bool covers(const Recompute::Rule& rule, std::int64_t layer, std::int64_t layers,
            const std::vector<std::int64_t>& chunk_layers) {
  using Which = Recompute::Blocks::Which;
  if (rule.blocks.empty()) return true;
  return std::ranges::any_of(rule.blocks, [&](const Recompute::Blocks& blocks) {
    if (blocks.which == Which::chunk) return in_chunk(layer, chunk_layers) < blocks.a;
    if (blocks.which == Which::every) return (in_chunk(layer, chunk_layers) + 1) % blocks.a == 0;
    const auto [begin, end] = extent(blocks, layers);
    return begin <= layer && layer < end;
  });
}

bool counted_in_chunks(const Recompute::Rule& rule) {
  return std::ranges::any_of(rule.blocks, [](const Recompute::Blocks& b) { return b.counted_in_chunks(); });
}

/// Throws Error{usage} where a rule selects no block of the model, or every-n none of a chunk.
void check_blocks(const Recompute::Blocks& blocks, std::int64_t layers, const std::string& where,
                  std::vector<std::int64_t> chunk_layers) {
  using Which = Recompute::Blocks::Which;
  if (const auto [begin, end] = extent(blocks, layers); begin >= end)
    throw_usage("{}: {} holds none of the {} blocks; allowed are blocks 0 to {}", where, to_string(blocks), layers,
                layers - 1);
  if (blocks.which != Which::every) return;
  if (chunk_layers.empty()) chunk_layers = {layers};
  for (std::size_t chunk = 0; chunk < chunk_layers.size(); ++chunk)
    if (const std::int64_t has = chunk_layers[chunk]; has > 0 && has < blocks.a)
      throw_usage("{}: {} holds none of the {} blocks{}; needs every-{} or less", where, to_string(blocks), has,
                  layers == has ? "" : fmt::format(" of chunk {} of {}", chunk + 1, chunk_layers.size()), has);
}

Module module_from_string(const std::string& word) {
  // LLM Foundry's classes and Megatron-Core's words for the same part of a block.
  static const std::vector<std::pair<const char*, Module>> aliases{{"mptblock", Module::block},
                                                                   {"MPTBlock", Module::block},
                                                                   {"grouped_query_attention", Module::attention},
                                                                   {"multihead_attention", Module::attention},
                                                                   {"mb_dmoe", Module::experts},
                                                                   {"mb_moe", Module::experts},
                                                                   {"layernorm", Module::norm},
                                                                   {"core_attn", Module::core}};
  for (const ModuleWord& known : kModules)
    if (known.word == word) return known.module;
  for (const auto& [name, module] : aliases)
    if (name == word) return module;
  throw_usage("recompute: found '{}', allowed {}", word, joined(kModules, ", ", &ModuleWord::word));
}

/// A number n = the first n; words separated by commas; a list of numbers (single blocks) and words; null = every
/// block.
std::vector<Recompute::Blocks> blocks_from_yaml(const YAML::Node& node) {
  using Which = Recompute::Blocks::Which;
  std::vector<Recompute::Blocks> out;
  if (node.IsNull()) return out;
  const auto words = [&](const std::string& text) {
    for (const std::string& word : split(text, ',')) out.push_back(blocks_from_string(word));
  };
  if (node.IsScalar()) {
    if (const std::int64_t n = number(node.Scalar()); n > 0)
      out.push_back({Which::first, n, 0});
    else
      words(node.Scalar());
  } else if (node.IsSequence() && node.size() > 0) {
    for (const YAML::Node& entry : node) {
      if (const std::int64_t id = entry.IsScalar() ? number(entry.Scalar()) : -1; id >= 0)
        out.push_back({Which::range, id, id + 1});
      else
        words(entry.IsScalar() ? entry.Scalar() : "a list or map");
    }
  } else {
    throw_usage("recompute: blocks: found a map or an empty list, {}, a number, or a list of these", kBlockWords);
  }
  return out;
}

void read_target(YAML::Node target, Recompute& out) {
  if (target.IsNull() || (target.IsSequence() && target.size() == 0)) {
    out.add({Module::block, {}});
  } else if (target.IsScalar()) {
    out.add({module_from_string(target.Scalar()), {}});
  } else if (target.IsSequence()) {
    for (const YAML::Node& module : target)
      out.add({module_from_string(module.IsScalar() ? module.Scalar() : "a list or map"), {}});
  } else {
    for (const auto& entry : target)
      out.add({module_from_string(entry.first.Scalar()), blocks_from_yaml(entry.second)});
  }
}

Recompute everywhere(Module module) {
  Recompute out;
  out.add({module, {}});
  return out;
}

}  // namespace

const Recompute Recompute::block = everywhere(Module::block);

std::string to_string(Module module) { return kModules[static_cast<std::size_t>(module)].word; }

std::vector<Module> every_module() { return mapped(kModules, &ModuleWord::module); }

std::string to_string(Compression compression) { return word_for(compression, kCompressions); }

void Recompute::add(Rule rule) {
  const auto at = std::ranges::lower_bound(rules_, rule.module, {}, &Rule::module);
  if (at != rules_.end() && at->module == rule.module)
    throw_usage("recompute: found {} twice, allowed once; list all its blocks there", to_string(rule.module));
  rules_.insert(at, std::move(rule));
}

LayerRecompute Recompute::of(std::int64_t layer, std::int64_t layers,
                             const std::vector<std::int64_t>& chunk_layers) const {
  LayerRecompute out;
  for (const Rule& rule : rules_)
    out.*kModules[static_cast<std::size_t>(rule.module)].flag =
        covers(rule, std::min(layer, layers - 1), layers, chunk_layers);
  out.block = out.block || out.products;
  return out;
}

bool Recompute::has(Module module) const {
  return std::ranges::any_of(rules_, [&](const Rule& rule) { return rule.module == module; });
}

bool Recompute::all_layers_alike() const {
  return std::ranges::all_of(rules_, [](const Rule& rule) { return rule.blocks.empty(); });
}

bool Recompute::counts_in_chunks() const { return std::ranges::any_of(rules_, counted_in_chunks); }

Recompute Recompute::as_ranges(std::int64_t layers, const std::vector<std::int64_t>& chunk_layers) const {
  Recompute out;
  out.compression = compression;
  for (const Rule& rule : rules_) {
    Rule ranges{rule.module, rule.blocks};
    if (counted_in_chunks(rule)) {
      ranges.blocks.clear();
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        if (!covers(rule, layer, layers, chunk_layers)) continue;
        if (!ranges.blocks.empty() && ranges.blocks.back().b == layer)
          ++ranges.blocks.back().b;
        else
          ranges.blocks.push_back({Blocks::Which::range, layer, layer + 1});
      }
      if (ranges.blocks.empty()) continue;
    }
    out.add(std::move(ranges));
  }
  return out;
}

void Recompute::check(std::int64_t layers, const std::string& where,
                      const std::vector<std::int64_t>& chunk_layers) const {
  for (const Rule& rule : rules_)
    for (const Blocks& blocks : rule.blocks)
      check_blocks(blocks, layers, fmt::format("{}: recompute of {}", where, to_string(rule.module)), chunk_layers);
  bool inputs = false;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerRecompute recompute = of(layer, layers, chunk_layers);
    for (const auto& [whole, part] : kParts)
      if (recompute.*kModules[static_cast<std::size_t>(whole)].flag &&
          recompute.*kModules[static_cast<std::size_t>(part)].flag)
        throw_usage("{}: recompute: found {} and {} of block {}, allowed one of them: the first has the second in it",
                    where, to_string(whole), to_string(part), layer);
    LayerRecompute alone;
    alone.block = recompute.block, alone.products = recompute.products;
    if (recompute.block && recompute != alone)
      throw_usage("{}: recompute: block {} is to be recomputed as a whole and in parts; take it out of one of them",
                  where, layer);
    inputs = inputs || recompute.recomputes_attention();
  }
  if (compression != Compression::none && !inputs)
    throw_usage(
        "{}: activation_compression: found {}, but no block computes its attention again, and only the inputs of those "
        "are kept compressed; add recompute of block or attention, or set none",
        where, to_string(compression));
}

std::string to_string(const Recompute& recompute) {
  if (!recompute.any()) return "none";
  const std::string out = joined(recompute.rules(), "+", [](const Recompute::Rule& rule) {
    return to_string(rule.module) + (rule.blocks.empty() ? "" : ":" + text_of(rule.blocks));
  });
  return recompute.compression == Compression::none ? out : out + "/" + to_string(recompute.compression);
}

std::int64_t mask_of(const LayerRecompute& recompute) {
  std::int64_t mask = 0;
  for (const ModuleWord& known : kModules)
    if (recompute.*known.flag) mask |= std::int64_t{1} << static_cast<int>(known.module);
  return mask;
}

Recompute recompute_of_mask(std::int64_t mask) {
  Recompute out;
  for (const ModuleWord& known : kModules)
    if (mask >> static_cast<int>(known.module) & 1) out.add({known.module, {}});
  return out;
}

Recompute recompute_from_string(const std::string& text) {
  Recompute out;
  const std::vector<std::string> halves = split(text, '/');
  if (halves.size() > 1) {
    const auto known = enumerator_of<Compression>(halves[1], kCompressions);
    if (halves.size() > 2 || !known) throw_usage("recompute: found '{}', allowed behind / are none, int8, fp8", text);
    out.compression = *known;
  }
  if (halves[0] == "none") return out;
  for (const std::string& rule : split(halves[0], '+')) {
    const std::vector<std::string> parts = split(rule, ':');
    Recompute::Rule one{module_from_string(parts[0]), {}};
    for (std::size_t i = 1; i < parts.size(); ++i)
      for (const std::string& word : split(parts[i], ',')) one.blocks.push_back(blocks_from_string(word));
    out.add(std::move(one));
  }
  return out;
}

Recompute read_recompute(YamlMap& map) {
  Recompute out;
  const bool on = map.boolean("activation_checkpointing", false), target = map.has("activation_checkpointing_target");
  try {
    if (on) read_target(target ? map.node("activation_checkpointing_target") : YAML::Node(YAML::NodeType::Null), out);
  } catch (const Error& error) {
    if (!target) throw;
    map.fail("activation_checkpointing_target", error.what());
  }
  if (target && !on && !map.node("activation_checkpointing_target").IsNull())
    map.fail("activation_checkpointing_target",
             "found, but activation_checkpointing is false; set it to true or drop the target");
  out.compression = map.enumerator("activation_compression", kCompressions, Compression::none);
  return out;
}

void write_recompute(YAML::Emitter& out, const Recompute& recompute) {
  out << YAML::Key << "activation_checkpointing" << YAML::Value << recompute.any();
  Recompute rules = recompute;
  rules.compression = Compression::none;
  if (recompute.any() && rules != Recompute::block) {
    out << YAML::Key << "activation_checkpointing_target" << YAML::Value << YAML::BeginMap;
    for (const Recompute::Rule& rule : recompute.rules()) {
      out << YAML::Key << to_string(rule.module) << YAML::Value;
      if (rule.blocks.empty())
        out << YAML::Null;
      else
        out << text_of(rule.blocks);
    }
    out << YAML::EndMap;
  }
  if (recompute.compression != Compression::none)
    out << YAML::Key << "activation_compression" << YAML::Value << to_string(recompute.compression);
}

}  // namespace wt
