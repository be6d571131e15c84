// JSON that other programs wrote and parse_json would refuse: a key may stand twice, and numbers may be Python's.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace wt {

/// Deepest nesting of objects and lists that is read. Printing and comparing JSON recurse once a level.
inline constexpr int kDeepestJson = 200;

/// Whether brackets outside strings nest deeper than kDeepestJson. One pass; accepts any text.
bool too_deep(std::string_view json);

/// NaN, Infinity and -Infinity outside strings as strings: Python's json module writes these words, and they are no
/// JSON.
std::string without_python_numbers(std::string_view text);

/// A discarded value where the text is no JSON or too deep.
nlohmann::json lax_json(std::string_view text);
/// Why lax_json discarded the text, as the "found" part of an error.
std::string why_discarded(std::string_view text);

/// The text under the key; "" where there is none.
std::string text_at(const nlohmann::json& object, const char* key);

}  // namespace wt
