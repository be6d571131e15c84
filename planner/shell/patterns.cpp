// Patterns of file names, which case, [[ and ${NAME#...} compare with.
#include "planner/shell/interpreter.hpp"

namespace wt::shell {

bool matches(const std::string& text, const std::string& pattern) {
  // The last * is where matching goes back to, so that it takes at most size x size steps.
  std::size_t t = 0, p = 0, star = std::string::npos, from = 0;
  const auto one = [&](std::size_t& next) {  // whether the pattern's part at p matches text[t]
    next = p + 1;
    if (pattern[p] == '?') return true;
    if (pattern[p] == '\\' && p + 1 < pattern.size()) {
      next = p + 2;
      return pattern[p + 1] == text[t];
    }
    const std::size_t close = pattern[p] == '[' ? pattern.find(']', p + 2) : std::string::npos;
    if (close == std::string::npos) return pattern[p] == text[t];
    next = close + 1;
    const bool negated = pattern[p + 1] == '!' || pattern[p + 1] == '^';
    bool in = false;
    for (std::size_t i = p + (negated ? 2 : 1); i < close; ++i)
      if (i + 2 < close && pattern[i + 1] == '-') {
        in = in || (pattern[i] <= text[t] && text[t] <= pattern[i + 2]);
        i += 2;
      } else {
        in = in || pattern[i] == text[t];
      }
    return in != negated;
  };
  while (t < text.size()) {
    std::size_t next = p;
    if (p < pattern.size() && pattern[p] == '*')
      star = p++, from = t;
    else if (p < pattern.size() && one(next))
      p = next, ++t;
    else if (star != std::string::npos)
      p = star + 1, t = ++from;
    else
      return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace wt::shell
