#include "planner/shell/unknown_text.hpp"

#include <algorithm>

namespace wt::shell {
namespace {

constexpr char kUnknown = '\x01', kUnknownEnd = '\x02', kFallback = '\x03', kFallbackEnd = '\x04', kOptional = '\x05';

}  // namespace

std::string unknown(const std::string& source) { return kUnknown + plain(shown(source)) + kUnknownEnd; }

std::string optional(const std::string& words, const std::string& condition) {
  return kUnknown + (kOptional + shown(words)) + kOptional + shown(condition) + kUnknownEnd;
}

std::optional<std::pair<std::string, std::string>> optional_of(const std::string& text) {
  if (text.size() < 4 || text[0] != kUnknown || text[1] != kOptional || text.find(kUnknownEnd) != text.size() - 1)
    return std::nullopt;
  const std::size_t middle = text.find(kOptional, 2);
  if (middle == std::string::npos) return std::nullopt;
  return std::pair{text.substr(2, middle - 2), text.substr(middle + 1, text.size() - middle - 2)};
}

bool has_unknown(const std::string& text) { return text.find(kUnknown) != std::string::npos; }

std::string shown(const std::string& text) {
  std::string out = plain(text);
  std::string clean;
  bool condition = false;
  for (std::size_t at = 0; at < out.size(); ++at) {
    const char c = out[at];
    if (c == kUnknownEnd && condition) clean += ")", condition = false;
    if (c == kOptional && at > 0 && out[at - 1] != kUnknown) clean += " (which depends on ", condition = true;
    if (c != kUnknown && c != kUnknownEnd && c != kOptional) clean += c;
  }
  return clean;
}

std::string first_unknown(const std::string& text) {
  const std::size_t begin = text.find(kUnknown);
  if (begin == std::string::npos) return "";
  return text.substr(begin + 1, text.find(kUnknownEnd, begin) - begin - 1);
}

std::string fallback_of(const std::string& variable, const std::string& value) {
  return value + kFallback + variable + kFallbackEnd;
}

std::vector<std::string> fallbacks_in(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = text.find(kFallback); at != std::string::npos; at = text.find(kFallback, at + 1)) {
    const std::string name = text.substr(at + 1, text.find(kFallbackEnd, at) - at - 1);
    if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string plain(const std::string& text, std::string* marks) {
  if (text.find(kFallback) == std::string::npos) return text;
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != kFallback) {
      out += text[at];
      continue;
    }
    const std::size_t end = std::min(text.find(kFallbackEnd, at), text.size() - 1);
    const std::string mark = text.substr(at, end + 1 - at);
    if (marks != nullptr && marks->find(mark) == std::string::npos) *marks += mark;
    at = end;
  }
  return out;
}

std::string without_marks(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c >= kUnknown && c <= kOptional; }, '?');
  return text;
}

std::size_t mark_at(const std::string& text, std::size_t at) {
  if (text[at] != kUnknown && text[at] != kFallback) return 0;
  const std::size_t end = text.find(text[at] == kUnknown ? kUnknownEnd : kFallbackEnd, at);
  return std::min(end, text.size() - 1) + 1 - at;
}

}  // namespace wt::shell
