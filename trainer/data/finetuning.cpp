#include "trainer/data/finetuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

namespace wt {
namespace {

using Json = nlohmann::json;
constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

[[noreturn]] void refuse_example(const std::string& place, const std::string& found, const char* allowed) {
  throw_usage("{}: found {}, allowed is {}; fix the line or leave it out", place, found, allowed);
}

std::string text_at(const Json& object, const char* key, const std::string& place) {
  const Json& value = object.at(key);
  if (!value.is_string()) refuse_example(place, fmt::format("{}: {}", key, value.type_name()), "a text");
  return value.get<std::string>();
}

FinetuningMessage message_of(const Json& value, const std::string& place) {
  if (!value.is_object() || value.size() != 2 || !value.contains("role") || !value.contains("content"))
    refuse_example(place, "a message of other keys", "role and content");
  FinetuningMessage message{text_at(value, "role", place), text_at(value, "content", place)};
  if (std::ranges::find(kRoles, message.role) == kRoles.end())
    refuse_example(place, fmt::format("the role '{}'", message.role), "system, user, assistant or tool");
  return message;
}

}  // namespace

FinetuningExample finetuning_example(const Json& object, const std::string& place) {
  FinetuningExample example;
  const char* const shapes = "{prompt, response} or {messages}, and no other key";
  if (object.size() == 1 && object.contains("messages")) {
    const Json& list = object["messages"];
    if (!list.is_array() || list.size() < 2)
      refuse_example(place, "too few messages", "a list of at least two messages");
    for (const Json& value : list) {
      FinetuningMessage message = message_of(value, place);
      if (!example.messages.empty() && example.messages.back().role == message.role)
        refuse_example(place, fmt::format("two messages of {} in a row", message.role), "roles that alternate");
      example.messages.push_back(std::move(message));
    }
    if (example.messages.back().role != "assistant")
      refuse_example(place, fmt::format("a last message of {}", example.messages.back().role),
                     "a last message of the assistant, which is what is learned");
    return example;
  }
  const char* const response = object.contains("response") ? "response" : "completion";
  if (object.size() != 2 || !object.contains("prompt") || !object.contains(response)) {
    const std::string keys = joined(object.items(), ", ", [](const auto& each) { return each.key(); });
    refuse_example(place, fmt::format("the keys {{{}}}", keys), shapes);
  }
  example.prompt = text_at(object, "prompt", place);
  example.response = text_at(object, response, place);
  return example;
}

std::vector<FinetuningTexts> chat_turns(const std::vector<FinetuningMessage>& messages) {
  std::vector<FinetuningTexts> turns;
  FinetuningTexts turn;
  for (const FinetuningMessage& message : messages) {
    const std::string head = "<|im_start|>" + message.role + "\n";
    const std::string body = message.content + "<|im_end|>\n";
    if (message.role != "assistant") {
      turn.prompt += head + body;
      continue;
    }
    turn.prompt += head;
    turn.response = body;
    turns.push_back(std::exchange(turn, {}));
  }
  return turns;
}

std::string encode_turns(const std::vector<FinetuningTurn>& turns) {
  std::string text = "[";
  for (const FinetuningTurn& turn : turns)
    text += fmt::format("{}{{\"input_ids\": [{}], \"labels\": [{}]}}", text.size() > 1 ? ", " : "",
                        fmt::join(turn.input_ids, ", "), fmt::join(turn.labels, ", "));
  return text + "]";
}

bool can_be_learned(const std::vector<FinetuningTurn>& turns, std::int64_t max_seq_len) {
  std::int64_t before = 0;
  for (const FinetuningTurn& turn : turns) {
    if (turn.input_ids.empty() || turn.labels.empty()) return false;
    before += static_cast<std::int64_t>(turn.input_ids.size());
    if (&turn != &turns.back()) before += static_cast<std::int64_t>(turn.labels.size());
  }
  return !turns.empty() && before < max_seq_len;
}

}  // namespace wt
