// A cell of free text, as people write it: "forced_balance, dropless; dispatcher DeepEP over UCCL". A column takes the
// phrases that it knows; what is left was not understood, and the row says so.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wt {

class Sentence {
 public:
  explicit Sentence(std::string text) : rest_(std::move(text)) {}

  /// Whether the text has the phrase: a regular expression at whole words, letter case ignored. All places of it count
  /// as understood. A phrase that is denied ("not natural", "DeepEP off") is none.
  bool take(const char* phrase) { return take_first(phrase).has_value(); }
  /// The same of a phrase with one group: what the group holds, at its first place.
  std::optional<std::string> take_value(const char* phrase);
  /// The values whose phrases the text has, each once, in order of the list: what is part of another stands after it.
  template <class Value>
  std::vector<Value> take_all(const std::vector<std::pair<const char*, Value>>& known) {
    std::vector<Value> out;
    for (const auto& [phrase, value] : known)
      if (take(phrase)) out.push_back(value);
    return out;
  }

  /// What nobody took, part by part between commas, semicolons and brackets, without words that say nothing alone.
  std::string not_understood() const;

 private:
  std::optional<std::vector<std::string>> take_first(const char* phrase);

  std::string rest_;  ///< with blanks where phrases were taken
};

}  // namespace wt
