// Finetuning examples in LLM Foundry's formats, {prompt, response} or {messages: [{role, content}, ...]}, and the turns
// in its tokenized data sets (llm-foundry 0.22.0, data/finetuning/tasks.py).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wt {

struct FinetuningMessage {
  std::string role;  ///< system, user, assistant, tool
  std::string content;
};

struct FinetuningExample {
  std::string prompt, response;             ///< unless there are messages
  std::vector<FinetuningMessage> messages;  ///< the last one is the assistant's
};

/// Throws Error{usage} with `place`: other keys, values that are not text, fewer than two messages, a role that is
/// unknown or repeats the previous one, a last message that is not the assistant's.
FinetuningExample finetuning_example(const nlohmann::json& object, const std::string& place);

/// The model's input and the expected answer.
struct FinetuningTexts {
  std::string prompt, response;
};
/// One pair per message of the assistant, in ChatML, the template for tokenizers without one.
std::vector<FinetuningTexts> chat_turns(const std::vector<FinetuningMessage>& messages);

struct FinetuningTurn {
  std::vector<std::uint32_t> input_ids;  ///< the prompt
  std::vector<std::uint32_t> labels;     ///< the response
};

/// The payload of the column `turns` (encoding json), formatted like Python's json.dumps.
std::string encode_turns(const std::vector<FinetuningTurn>& turns);

/// Whether anything can be learned from it at `max_seq_len`: every turn has a prompt and a response, and the last
/// response, which Foundry trains on by default, begins before that length.
bool can_be_learned(const std::vector<FinetuningTurn>& turns, std::int64_t max_seq_len);

}  // namespace wt
