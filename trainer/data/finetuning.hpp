// Finetuning examples as LLM Foundry takes them: {prompt, response} or {messages: [{role, content}, ...]}; and the
// turns that its tokenized data sets hold (llm-foundry 0.22.0, data/finetuning/tasks.py).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wt {

struct FinetuningMessage {
  std::string role;  ///< system, user, assistant, tool
  std::string content;
};

struct FinetuningExample {
  std::string prompt, response;             ///< where there are no messages
  std::vector<FinetuningMessage> messages;  ///< the last by the assistant
};

/// Throws Error{usage} naming `place`: other keys, values that are no text, fewer than two messages, a role that is not
/// known or repeats the one before, a last message that is not the assistant's.
FinetuningExample finetuning_example(const nlohmann::json& object, const std::string& place);

/// What the model reads and what it is to answer.
struct FinetuningTexts {
  std::string prompt, response;
};
/// One pair for each message of the assistant, in ChatML: the template of tokenizers that have none.
std::vector<FinetuningTexts> chat_turns(const std::vector<FinetuningMessage>& messages);

struct FinetuningTurn {
  std::vector<std::uint32_t> input_ids;  ///< the prompt
  std::vector<std::uint32_t> labels;     ///< the response
};

/// The payload of the column `turns`, encoding json: as Python's json.dumps writes it.
std::string encode_turns(const std::vector<FinetuningTurn>& turns);

/// Whether something of it can be learned at `max_seq_len`: no turn lacks its prompt or response, and the last
/// response, which is what Foundry trains on unless told otherwise, begins before that length.
bool can_be_learned(const std::vector<FinetuningTurn>& turns, std::int64_t max_seq_len);

}  // namespace wt
