#include "trainer/data/labelled_tokens.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "configs/base/lax_json.hpp"

namespace wt {
namespace {

/// The list of ids at `key` of a turn.
std::vector<std::int32_t> ids_under(const nlohmann::json& turn, const char* key, const std::string& place) {
  const auto is_id = [](const nlohmann::json& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
  };
  const bool there = turn.is_object() && turn.contains(key) && turn.at(key).is_array();
  if (!there || !std::ranges::all_of(turn.at(key), is_id))
    throw_usage(
        "{}: found a turn without a list of token ids under {}, allowed are turns of input_ids and labels, ids from 0 "
        "to 2147483647; pack it again",
        place, key);
  return turn.at(key).get<std::vector<std::int32_t>>();
}

bool learns_prompt(const FinetuningSpec& spec, std::size_t length) {
  if (spec.prompts == FinetuningSpec::Prompts::long_ones) return std::cmp_greater_equal(length, spec.shortest_prompt);
  return spec.prompts == FinetuningSpec::Prompts::all;
}

}  // namespace

std::int64_t LabelledTokens::targets() const { return std::ranges::count(learned, true); }

LabelledTokens labelled_tokens(const std::string& text, const FinetuningSpec& spec, std::int64_t max_seq_len,
                               const std::string& place) {
  const nlohmann::json turns = lax_json(text);
  if (!turns.is_array() || turns.empty())
    throw_usage("{}: found no list of turns, allowed is one of {{input_ids, labels}}; pack it again", place);
  LabelledTokens out;
  const auto add = [&](const std::vector<std::int32_t>& ids, bool learned) {
    out.tokens.insert(out.tokens.end(), ids.begin(), ids.end());
    out.learned.insert(out.learned.end(), ids.size(), learned);
  };
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const bool last = i + 1 == turns.size();
    const std::vector<std::int32_t> prompt = ids_under(turns[i], "input_ids", place);
    std::vector<std::int32_t> response = ids_under(turns[i], "labels", place);
    if (last && spec.eos_token_id && (response.empty() || response.back() != *spec.eos_token_id))
      response.push_back(static_cast<std::int32_t>(*spec.eos_token_id));
    add(prompt, learns_prompt(spec, prompt.size()));
    add(response, last || spec.all_responses);
  }
  if (out.tokens.empty()) throw_usage("{}: found no token, allowed is at least one; leave the example out", place);
  out.learned.front() = false;  // it has no context
  const auto length = static_cast<std::int64_t>(out.tokens.size());
  if (length <= max_seq_len) return out;
  const bool taught = out.targets() > 0;
  out.tokens.resize(static_cast<std::size_t>(max_seq_len));
  out.learned.resize(static_cast<std::size_t>(max_seq_len));
  if (taught && out.targets() == 0)
    throw_usage(
        "{}: found {} tokens, of which the first {} (max_seq_len) hold nothing to learn, allowed is an example whose "
        "response begins before; pack the data with --seq-len {}, which leaves such examples out",
        place, length, max_seq_len, max_seq_len);
  return out;
}

}  // namespace wt
