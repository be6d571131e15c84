// Where a quoted or substituted part of a word ends.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "planner/shell/syntax.hpp"
#include "planner/shell/unknown_text.hpp"

namespace wt::shell {

std::size_t behind_brackets(const std::string& text, std::size_t at, char open, char close) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    const std::size_t mark = mark_at(text, at);
    if (mark > 0 || c == '\\') {
      at += std::max<std::size_t>(mark, c == '\\' ? 2 : 0);
      continue;
    }
    if (c == '\'' || c == '"' || c == '`' || (c == '$' && at + 1 < text.size() && std::strchr("({", text[at + 1]))) {
      at = behind_part(text, at);
      continue;
    }
    if (c == '#' && open == '(' && at > 0 && std::isspace(static_cast<unsigned char>(text[at - 1])) != 0) {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    depth += c == open ? 1 : c == close ? -1 : 0;
    ++at;
    if (depth == 0) return at;
  }
  return text.size();
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_name(const std::string& word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
         std::ranges::all_of(word, [](char c) { return is_name(c); });
}

std::size_t behind_part(const std::string& text, std::size_t at) {
  thread_local int depth = 0;  // of quotes and substitutions inside each other
  constexpr int kDeepestParts = 200;
  if (depth > kDeepestParts) return text.size();
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } deeper;
  const char c = text[at];
  const auto end = [&](std::size_t found) { return found == std::string::npos ? text.size() : found + 1; };
  if (c == '\'') return end(text.find('\'', at + 1));
  if (c == '"' || c == '`') {
    for (++at; at < text.size() && text[at] != c;)
      at = mark_at(text, at) > 0                                ? at + mark_at(text, at)
           : text[at] == '\\'                                   ? at + 2
           : c == '"' && std::strchr("$`", text[at]) != nullptr ? behind_part(text, at)
                                                                : at + 1;
    return std::min(at + 1, text.size());
  }
  if (at + 1 >= text.size()) return text.size();
  const char second = text[at + 1];
  if (second == '(') return behind_brackets(text, at + 1, '(', ')');
  if (second == '{') return behind_brackets(text, at + 1, '{', '}');
  if (second == '\'') {  // $'...'
    for (at += 2; at < text.size() && text[at] != '\'';) at += text[at] == '\\' ? 2 : 1;
    return std::min(at + 1, text.size());
  }
  if (second == '"') return behind_part(text, at + 1);
  std::size_t stop = at + 1;
  while (stop < text.size() && is_name(text[stop])) ++stop;
  if (std::isdigit(static_cast<unsigned char>(second)) != 0) return at + 2;
  return stop > at + 1 ? stop : std::strchr("@*#?$!-", second) != nullptr ? at + 2 : at + 1;
}

}  // namespace wt::shell
