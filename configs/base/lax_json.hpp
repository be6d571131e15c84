// JSON of other programs, which parse_json would be too strict for: a key may stand twice.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace wt {

/// Levels of objects and lists that are read: those who print or compare JSON call themselves at each.
inline constexpr int kDeepestJson = 200;

/// Whether brackets outside of strings open more levels than that. One pass; the text may be no JSON at all.
bool too_deep(std::string_view json);

/// Discarded where the text is no JSON, or too deep.
nlohmann::json lax_json(std::string_view text);
/// What such a text is, as an error says it was found.
std::string why_discarded(std::string_view text);

}  // namespace wt
