#include "configs/base/lax_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace wt {
namespace {

/// One of Python's words at the start of the text, or "".
std::string_view python_number(std::string_view text) {
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity"})
    if (text.starts_with(word)) return word;
  return "";
}

}  // namespace

bool too_deep(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '[' || c == '{') && ++depth > kDeepestJson)
      return true;
    else if (!in_string && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

std::string without_python_numbers(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::string_view number = in_string ? "" : python_number(text.substr(at));
    const std::size_t taken = !number.empty() ? number.size() : in_string && c == '\\' ? 2 : 1;
    if (c == '"') in_string = !in_string;
    if (!number.empty()) out += '"';
    out += text.substr(at, taken);
    if (!number.empty()) out += '"';
    at += taken;
  }
  return out;
}

nlohmann::json lax_json(std::string_view text) {
  if (too_deep(text)) return nlohmann::json(nlohmann::json::value_t::discarded);
  nlohmann::json out = nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!out.is_discarded() || (text.find("NaN") == text.npos && text.find("Infinity") == text.npos)) return out;
  return nlohmann::json::parse(without_python_numbers(text), nullptr, /*allow_exceptions=*/false);
}

std::string why_discarded(std::string_view text) {
  return too_deep(text) ? fmt::format("objects and lists in more than {} levels", kDeepestJson)
                        : "text that is no JSON";
}

std::string text_at(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
}

}  // namespace wt
