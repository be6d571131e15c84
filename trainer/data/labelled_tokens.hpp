// The tokens of a finetuning example, and which of them count in the loss (LLM Foundry 0.22.0,
// data/finetuning/collator.py: decoder-only).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/finetuning_spec.hpp"

namespace wt {

struct LabelledTokens {
  std::vector<std::int32_t> tokens;
  std::vector<bool> learned;  ///< by token: whether the model is trained to predict it; never the first
  std::int64_t targets() const;
};

/// `turns`: the payload of the column, a list of {input_ids, labels}. Joins prompts and responses, up to max_seq_len
/// tokens. Throws Error{usage} with `place`: other JSON, invalid ids, no tokens, and an example without tokens in the
/// loss within max_seq_len.
LabelledTokens labelled_tokens(const std::string& turns, const FinetuningSpec& spec, std::int64_t max_seq_len,
                               const std::string& place);

}  // namespace wt
