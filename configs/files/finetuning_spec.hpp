// How a finetuning data set is read: which tokens count in the loss, and how many examples share a sequence. Keys,
// words and defaults are LLM Foundry's (0.22.0, data/finetuning). Only eos_token_id is ours: LLM Foundry uses its
// tokenizer's end token.
#pragma once
#include <cstdint>
#include <optional>

namespace YAML {
class Emitter;
}

namespace wt {

class YamlMap;

struct FinetuningSpec {
  enum class Prompts { none, all, long_ones };
  Prompts prompts = Prompts::none;           ///< prompts that count in the loss
  std::int64_t shortest_prompt = 0;          ///< tokens; for long_ones
  bool all_responses = false;                ///< in an example of several turns; false: only the last response
  double packing_ratio = 1;                  ///< samples drawn for each sequence of a batch; 1: one example a sequence
  std::optional<std::int64_t> eos_token_id;  ///< appended to a last response that lacks it; none: nothing is appended
  friend bool operator==(const FinetuningSpec&, const FinetuningSpec&) = default;

  bool packs() const { return packing_ratio > 1; }
};

/// Reads the finetuning keys of the map `dataset`. Throws Error{usage}: unknown words, a ratio below 1 or `auto`.
FinetuningSpec read_finetuning(YamlMap& dataset);
/// Throws Error{usage} where a loader with another name has one of these keys.
void refuse_finetuning_keys(YamlMap& dataset);
/// Writes these keys into the map `dataset`.
void finetuning_to_yaml(const FinetuningSpec& spec, YAML::Emitter& out);

}  // namespace wt
