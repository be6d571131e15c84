// Words in the making, for expansion.cpp and parameters.cpp.
#pragma once
#include <cstring>
#include <string>

#include "planner/shell/interpreter.hpp"

namespace wt::shell {

inline bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Words in the making.
struct Fields {
  Words words;
  std::string now;
  bool begun = false;  ///< also by "" in quotes
  bool splits = true;
  bool escapes = false;  ///< quoted characters get a backslash, for patterns

  void add(const std::string& text, bool quoted) {
    begun = begun || quoted || !text.empty();
    if (!quoted && splits) {
      for (std::size_t at = 0; at < text.size(); ++at) {
        if (const std::size_t mark = mark_at(text, at); mark > 0) {
          now += text.substr(at, mark), at += mark - 1;
        } else if (is_blank(text[at])) {
          end();
        } else {
          now += text[at], begun = true;
        }
      }
      if (now.empty() && !text.empty()) begun = false;
      return;
    }
    if (!escapes || !quoted) {
      now += text;
      return;
    }
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (const std::size_t mark = mark_at(text, at); mark > 0) {
        now += text.substr(at, mark), at += mark - 1;
        continue;
      }
      if (std::strchr("*?[]\\", text[at]) != nullptr) now += '\\';
      now += text[at];
    }
  }
  void end() {
    if (begun && (!now.empty() || begun)) {
      if (!now.empty() || quoted_empty) words.push_back(now);
    }
    now.clear(), begun = quoted_empty = false;
  }
  bool quoted_empty = false;
};

}  // namespace wt::shell
