// Words after expansion of variables, substitutions and quotes, and split where bash splits them.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "configs/base/error.hpp"
#include "planner/shell/fields.hpp"

namespace wt::shell {
namespace {

constexpr std::size_t kMostMade = 1 << 22;  // A="$A $A" is short, and soon fills the memory

/// {1..4} as the words 1 to 4, {a,b} as a and b.
Words brace_words(const std::string& word) {
  if (word.size() < 4 || word.front() != '{' || word.back() != '}' || word.find('{', 1) != std::string::npos)
    return {word};
  const std::string inner = word.substr(1, word.size() - 2);
  Words out;
  if (const std::size_t dots = inner.find(".."); dots != std::string::npos) {
    char* end = nullptr;
    const long first = std::strtol(inner.c_str(), &end, 10);
    if (end != inner.c_str() + dots) return {word};
    const long last = std::strtol(inner.c_str() + dots + 2, &end, 10);
    constexpr long kMost = 10000;
    if (*end != 0 || end == inner.c_str() + dots + 2 || std::abs(first) > kMost || std::abs(last) > kMost)
      return {word};
    for (long i = first; first <= last ? i <= last : i >= last; i += first <= last ? 1 : -1)
      out.push_back(std::to_string(i));
    return out;
  }
  if (inner.find(',') == std::string::npos || inner.find_first_of("$'\"` ") != std::string::npos) return {word};
  for (std::size_t at = 0; at <= inner.size();) {
    const std::size_t comma = std::min(inner.find(',', at), inner.size());
    out.push_back(inner.substr(at, comma - at)), at = comma + 1;
  }
  return out;
}

}  // namespace

Words Interpreter::expand(const Words& words) {
  Words out;
  for (const std::string& word : words)
    for (const std::string& one : brace_words(word))
      for (std::string& made : expand(one)) out.push_back(std::move(made));
  return out;
}

Words Interpreter::expand(const std::string& word) {
  Fields fields;
  expand_into(word, fields, false);
  fields.end();
  std::size_t size = 0;
  for (const std::string& one : fields.words) size += one.size() + 1;
  step(size / 1000);
  if (size > kMostMade)
    throw_usage("{}:{}: found variables that stand for more than {} bytes, needs shorter ones", origin_, line_,
                kMostMade);
  return std::move(fields.words);
}

std::string Interpreter::expand_text(const std::string& word) {
  Fields fields;
  fields.splits = false;
  expand_into(word, fields, false);
  step(fields.now.size() / 1000);
  if (fields.now.size() > kMostMade)
    throw_usage("{}:{}: found variables that stand for more than {} bytes, needs shorter ones", origin_, line_,
                kMostMade);
  return fields.now;
}

std::string Interpreter::expand_pattern(const std::string& word) {
  Fields fields;
  fields.splits = false, fields.escapes = true;
  expand_into(word, fields, false);
  return fields.now;
}

std::string Interpreter::expand_document(const std::string& text) {
  Fields fields;
  fields.splits = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\\' && at + 1 < text.size() && std::strchr("$`\\\n", text[at + 1]) != nullptr) {
      if (text[at + 1] != '\n') fields.now += text[at + 1];
      at += 2;
    } else if (const std::size_t mark = mark_at(text, at); mark > 0) {
      fields.now += text.substr(at, mark), at += mark;
    } else if (text[at] == '$' || text[at] == '`') {
      dollar(text, at, true, fields);
    } else {
      fields.now += text[at++];
    }
  }
  return fields.now;
}

void Interpreter::expand_into(const std::string& word, Fields& out, bool quoted) {
  for (std::size_t at = 0; at < word.size();) {
    const char c = word[at];
    if (const std::size_t mark = mark_at(word, at); mark > 0) {
      out.add(word.substr(at, mark), true), at += mark;
    } else if (c == '\'' && !quoted) {
      const std::size_t end = behind_part(word, at);
      out.add(word.substr(at + 1, end - at - (end > at + 1 && word[end - 1] == '\'' ? 2 : 1)), true);
      out.quoted_empty = true, at = end;
    } else if (c == '"' && !quoted) {
      const std::size_t end = behind_part(word, at);
      const bool closed = end > at + 1 && word[end - 1] == '"';
      const std::string inner = word.substr(at + 1, end - at - (closed ? 2 : 1));
      if (inner != "$@" && inner != "${@}")
        out.quoted_empty = inner.find("[@]}") == std::string::npos || out.quoted_empty;
      out.begun = out.begun || out.quoted_empty;
      expand_into(inner, out, true);
      at = end;
    } else if (c == '\\' && at + 1 < word.size()) {
      if (word[at + 1] == '\n') {
      } else if (quoted && std::strchr("$`\"\\", word[at + 1]) == nullptr) {
        out.add(word.substr(at, 2), true);
      } else {
        out.add(word.substr(at + 1, 1), true);
      }
      at += 2;
    } else if (c == '$' || c == '`') {
      dollar(word, at, quoted, out);
    } else {
      std::size_t end = at + 1;
      while (end < word.size() && std::strchr("'\"\\$`\x01\x03", word[end]) == nullptr) ++end;
      if (quoted)
        while (end < word.size() && (word[end] == '\'' || (word[end] == '"' && quoted))) {
          ++end;
          while (end < word.size() && std::strchr("'\"\\$`\x01\x03", word[end]) == nullptr) ++end;
        }
      // what is written in a word is not split: only what expansions make
      const std::string text = word.substr(at, end - at);
      const bool splits = std::exchange(out.splits, false);
      out.add(text, quoted);
      out.splits = splits, out.begun = true;
      at = end;
    }
  }
}

void Interpreter::dollar(const std::string& word, std::size_t& at, bool quoted, Fields& out) {
  const std::size_t end = behind_part(word, at);
  const std::string source = word.substr(at, end - at);
  at = end;
  if (source[0] == '`') {
    std::string inner = source.substr(1, source.size() - std::min<std::size_t>(2, source.size()));
    for (std::size_t i = 0; (i = inner.find('\\', i)) != std::string::npos; ++i) inner.erase(i, 1);
    out.add(substitution(inner, source), quoted);
    return;
  }
  if (source == "$") return out.add("$", quoted);
  const char second = source[1];
  if (source.starts_with("$((") && source.ends_with("))"))
    return out.add(arithmetic(source.substr(3, source.size() - 5)), quoted);
  if (second == '(')
    return out.add(substitution(source.substr(2, source.size() - std::min<std::size_t>(3, source.size())), source),
                   quoted);
  if (second == '{')
    return braces(source.substr(2, source.size() - std::min<std::size_t>(3, source.size())), quoted, out);
  if (second == '\'') {
    out.quoted_empty = true;
    std::string text = source.substr(2, source.size() - std::min<std::size_t>(3, source.size()));
    for (const auto& [escape, stands] : {std::pair{"\\n", "\n"}, {"\\t", "\t"}, {"\\'", "'"}, {"\\\\", "\\"}})
      for (std::size_t i = 0; (i = text.find(escape, i)) != std::string::npos; ++i) text.replace(i, 2, stands);
    return out.add(text, true);
  }
  if (second == '"') return expand_into(source.substr(1), out, quoted);
  if (!is_name(second) && std::strchr("@*#?$!-", second) == nullptr) return out.add(source, quoted);
  braces(source.substr(1), quoted, out);
}

std::string Interpreter::substitution(const std::string& inner, const std::string& source) {
  if (++depth_ > 30)
    throw_usage("{}:{}: found substitutions inside each other more than 30 times, needs fewer", origin_, line_);
  std::string text;
  if (inner.find_first_not_of(" \t\n") != std::string::npos &&
      inner[inner.find_first_not_of(" \t\n")] == '<') {  // $(< file)
    const std::string path = expand_text(inner.substr(inner.find('<') + 1));
    --depth_;
    const auto found = file_text(path.substr(std::min(path.find_first_not_of(" \t"), path.size())));
    return found ? *found : unknown(source);
  }
  const State before = state_;
  std::string* const outside = std::exchange(output_, &text);
  const bool known_outside = std::exchange(output_known_, true);
  run(parse(inner, origin_));
  const bool known = output_known_;
  output_ = outside, output_known_ = known_outside;
  const Status last = state_.last;
  state_ = before;
  state_.last = last;
  --depth_;
  if (!known) return unknown(source);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void Interpreter::set(const std::string& name, const std::string& value) {
  Variable& variable = state_.variables[name];
  if (variable.list && !variable.items.empty())
    variable.items.front().second = value;
  else
    variable.items = {{"0", value}};
}

void Interpreter::assign(const Assignment& one, bool exports) {
  // The value comes first: X=${X:-1}, LIST=("${LIST[@]}" more).
  Words list;
  std::vector<std::pair<std::string, std::string>> named;
  if (one.is_list)
    for (const std::string& word : one.list) {
      const std::size_t close = word.find("]=");
      if (word.front() == '[' && close != std::string::npos)
        named.emplace_back(expand_text(word.substr(1, close - 1)), expand_text(word.substr(close + 2)));
      else
        for (std::string& value : expand(Words{word})) list.push_back(std::move(value));
    }
  const std::string value = one.is_list ? "" : expand_text(one.value);
  const std::string index = one.index.empty() ? "" : expand_text(one.index);
  Variable& variable = state_.variables[one.name];
  variable.exported = variable.exported || exports;
  if (one.is_list) {
    if (!one.appends) variable.items.clear();
    variable.list = true, variable.named = variable.named || !named.empty();
    for (std::string& word : list) variable.items.emplace_back(std::to_string(variable.items.size()), std::move(word));
    for (auto& [key, text] : named) variable.items.emplace_back(key, text);
  } else if (!index.empty()) {
    variable.list = true;
    const std::string key = variable.named ? plain(index) : plain(arithmetic(index));
    const auto found = std::ranges::find_if(variable.items, [&](const auto& item) { return item.first == key; });
    if (found == variable.items.end())
      variable.items.emplace_back(key, value);
    else
      found->second = one.appends ? found->second + value : value;
  } else if (one.appends && !variable.items.empty()) {
    variable.items.front().second += value;
    if (variable.items.front().second.size() > kMostMade)
      throw_usage("{}:{}: found variables that stand for more than {} bytes, needs shorter ones", origin_, line_,
                  kMostMade);
  } else if (one.appends && !variable.list && variable.items.empty()) {
    variable.items = {{"0", unknown("$" + one.name) + value}};
  } else {
    variable.list = false;
    variable.items = {{"0", value}};
  }
}

}  // namespace wt::shell
