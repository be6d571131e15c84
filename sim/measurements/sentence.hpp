// A cell of free text, such as "forced_balance, dropless; dispatcher DeepEP over UCCL". A column takes the phrases that
// it knows. The rest was not understood, and the row says so.
#pragma once
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace wt {

/// The regular expression, letter case ignored. Compiled once a thread: tables have hundreds of rows, and each row is
/// searched for dozens of phrases.
const std::regex& compiled(const std::string& expression);
/// Whether the expression matches any part of the text.
inline bool has_match(const std::string& text, const std::string& expression) {
  return std::regex_search(text, compiled(expression));
}

class Sentence {
 public:
  explicit Sentence(std::string text) : rest_(std::move(text)) {}

  /// Whether the text has the phrase: a regular expression at whole words, letter case ignored. All its occurrences
  /// then count as understood. A negated phrase ("not natural", "DeepEP off") does not count.
  bool take(const char* phrase) { return take_first(phrase).has_value(); }
  /// The same for a phrase with one group. Returns the group's text at the first occurrence.
  std::optional<std::string> take_value(const char* phrase);
  /// The values whose phrases the text has, each once, in order of the list. A phrase must come after longer ones that
  /// include it.
  template <class Value>
  std::vector<Value> take_all(const std::vector<std::pair<const char*, Value>>& known) {
    std::vector<Value> out;
    for (const auto& [phrase, value] : known)
      if (take(phrase)) out.push_back(value);
    return out;
  }

  /// What nobody took, in parts between commas, semicolons and brackets. Leaves out words without a meaning of their
  /// own.
  std::string not_understood() const;

 private:
  std::optional<std::vector<std::string>> take_first(const char* phrase);

  std::string rest_;  ///< text with blanks in place of phrases that were taken
};

}  // namespace wt
