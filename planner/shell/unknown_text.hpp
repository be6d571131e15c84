// Texts of a script that are known in part. What a script does not say itself, such as $HOSTNAME or $(nvidia-smi),
// stays in a text as the words that stand for it, between two marks. A second pair of marks remembers, beside a value,
// which variable it is the fallback of: in ${NODES:-1} nobody said that NODES is 1.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace wt::shell {

/// A text that is not known, as the script writes it: "$(hostname)".
std::string unknown(const std::string& source);
/// Words that are there only if an unknown condition holds: "--fp8-format hybrid" and "[ -n "$FP8" ], in line 7".
std::string optional(const std::string& words, const std::string& condition);
/// The words and the condition, if the text is nothing else.
std::optional<std::pair<std::string, std::string>> optional_of(const std::string& text);
/// Whether any part of a text is not known.
bool has_unknown(const std::string& text);
/// What to show a user: unknown parts as the script writes them, without what fallbacks are of.
std::string shown(const std::string& text);
/// The first unknown part, as the script writes it.
std::string first_unknown(const std::string& text);

/// A value that a script gives where a variable is not set.
std::string fallback_of(const std::string& variable, const std::string& value);
/// The variables whose fallbacks a text is made of.
std::vector<std::string> fallbacks_in(const std::string& text);
/// The text without what its fallbacks are of; `marks` gets what was taken out, to be appended to what is made of it.
std::string plain(const std::string& text, std::string* marks = nullptr);

/// Replaces the marks in a text that was read from a file.
std::string without_marks(std::string text);
/// The length of a mark with its text at a position, or 0.
std::size_t mark_at(const std::string& text, std::size_t at);

}  // namespace wt::shell
