#include "reports/render/text_lines.hpp"

#include <algorithm>
#include <sstream>

namespace wt {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Bytes of the first `points` code points.
std::size_t bytes_of(const std::string& text, std::size_t points) {
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at)
    if (!continues(text[at]) && seen++ == points) break;
  return at;
}

}  // namespace

std::size_t text_width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

std::string tame(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = c == '\n' || c == '\t' ? ' ' : '?';
  // C1 controls, U+0080 to U+009F, are encoded as C2 80 to C2 9F: some terminals act on them as on ESC.
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0 && continues(text[i + 1]))
      text.replace(i, 2, "?");
  return text;
}

std::vector<std::string> wrapped_lines(const std::string& text, std::size_t width, LongWord longer) {
  width = std::max<std::size_t>(1, width);
  std::vector<std::string> lines;
  std::istringstream words(tame(text));
  for (std::string word; words >> word;) {
    if (!lines.empty() && text_width(lines.back()) + 1 + text_width(word) <= width) {
      lines.back() += " " + word;
      continue;
    }
    for (; longer == LongWord::broken && text_width(word) > width; word.erase(0, bytes_of(word, width)))
      lines.push_back(word.substr(0, bytes_of(word, width)));
    lines.push_back(word);
  }
  return lines;
}

}  // namespace wt
