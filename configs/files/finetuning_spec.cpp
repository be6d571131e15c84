#include "configs/files/finetuning_spec.hpp"

#include <array>
#include <string_view>

#include "configs/base/parsed.hpp"
#include "configs/base/yaml.hpp"

namespace wt {
namespace {

constexpr std::string_view kLongPrompts = "length>=";
constexpr std::array kFinetuningKeys = {"target_prompts", "target_responses", "packing_ratio", "eos_token_id"};

void read_prompts(YamlMap& map, FinetuningSpec& spec) {
  const std::string word = map.text("target_prompts", "none");
  if (word == "none") return;
  if (word == "all") {
    spec.prompts = FinetuningSpec::Prompts::all;
    return;
  }
  const std::string_view digits = std::string_view(word).substr(word.starts_with(kLongPrompts) ? 8 : word.size());
  spec.shortest_prompt = parsed<std::int64_t>(digits).value_or(0);
  if (spec.shortest_prompt < 1)
    map.fail("target_prompts", "found '{}', needs none, all, or 'length>=N' with N from 1", word);
  spec.prompts = FinetuningSpec::Prompts::long_ones;
}

void read_packing(YamlMap& map, FinetuningSpec& spec) {
  if (!map.has("packing_ratio")) return;
  if (map.text("packing_ratio") == "auto")
    map.fail("packing_ratio",
             "found auto, needs a number from 1: the ratio is part of what a run does, and auto depends on the ranks "
             "that measure it; take max_seq_len over the mean length, which `windtunnel data check` counts");
  spec.packing_ratio = map.number("packing_ratio", 1.0, 1e6);
}

}  // namespace

FinetuningSpec read_finetuning(YamlMap& map) {
  FinetuningSpec spec;
  read_prompts(map, spec);
  spec.all_responses = map.choice("target_responses", {"last", "all"}, "last") == "all";
  read_packing(map, spec);
  if (map.has("eos_token_id")) spec.eos_token_id = map.integer("eos_token_id", 0, INT32_MAX);
  return spec;
}

void refuse_finetuning_keys(YamlMap& map) {
  for (const char* key : kFinetuningKeys)
    if (map.has(key))
      map.fail(key, "found it in a loader of samples of tokens, needs `name: finetuning` beside the map dataset");
}

void finetuning_to_yaml(const FinetuningSpec& spec, YAML::Emitter& out) {
  const auto key = [&](const char* name) -> YAML::Emitter& { return out << YAML::Key << name << YAML::Value; };
  if (spec.prompts == FinetuningSpec::Prompts::all) key("target_prompts") << "all";
  if (spec.prompts == FinetuningSpec::Prompts::long_ones)
    key("target_prompts") << fmt::format("{}{}", kLongPrompts, spec.shortest_prompt);
  if (spec.all_responses) key("target_responses") << "all";
  if (spec.packs()) key("packing_ratio") << fmt::format("{}", spec.packing_ratio);
  if (spec.eos_token_id) key("eos_token_id") << *spec.eos_token_id;
}

}  // namespace wt
