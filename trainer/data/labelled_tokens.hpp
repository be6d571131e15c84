// The tokens of a finetuning example, and which of them a model learns to say (LLM Foundry 0.22.0,
// data/finetuning/collator.py: decoder-only).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "configs/files/finetuning_spec.hpp"

namespace wt {

struct LabelledTokens {
  std::vector<std::int32_t> tokens;
  std::vector<bool> learned;  ///< by token: it is to be predicted by what stands before it; never so of the first
  std::int64_t targets() const;
};

/// `turns`: the payload of the column, a list of {input_ids, labels}. Prompts and responses one after the other, at
/// most max_seq_len tokens of them. Throws Error{usage} naming `place`: other JSON, ids that are no token, no token at
/// all, and an example of which nothing is left to learn within max_seq_len.
LabelledTokens labelled_tokens(const std::string& turns, const FinetuningSpec& spec, std::int64_t max_seq_len,
                               const std::string& place);

}  // namespace wt
