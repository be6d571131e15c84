// How the examples of a finetuning data set are read: which of their tokens are learned, and how many examples share a
// sequence. Keys, words and defaults are LLM Foundry's (0.22.0, data/finetuning), but for eos_token_id, which is our
// key: LLM Foundry takes the end token of its tokenizer.
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
  Prompts prompts = Prompts::none;           ///< that are learned, too
  std::int64_t shortest_prompt = 0;          ///< tokens; of long_ones
  bool all_responses = false;                ///< of an example of several turns; false: the last one alone
  double packing_ratio = 1;                  ///< samples drawn for each sequence of a batch; 1: one example a sequence
  std::optional<std::int64_t> eos_token_id;  ///< ends the last response where the data do not; none: nothing is added
  friend bool operator==(const FinetuningSpec&, const FinetuningSpec&) = default;

  bool packs() const { return packing_ratio > 1; }
};

/// Its keys in the map `dataset` of a loader named finetuning. Throws Error{usage}: other words, a ratio below 1 or
/// `auto`.
FinetuningSpec read_finetuning(YamlMap& dataset);
/// Throws Error{usage} where a loader of another name has one of these keys.
void refuse_finetuning_keys(YamlMap& dataset);
/// Into the map `dataset`.
void finetuning_to_yaml(const FinetuningSpec& spec, YAML::Emitter& out);

}  // namespace wt
