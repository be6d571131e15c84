#include "sim/measurements/sentence.hpp"

#include <algorithm>
#include <map>

namespace wt {

const std::regex& compiled(const std::string& expression) {
  thread_local std::map<std::string, std::regex> known;
  const auto found = known.find(expression);
  return found != known.end() ? found->second
                              : known.emplace(expression, std::regex(expression, std::regex::icase)).first->second;
}

namespace {

bool denied(const std::string& before, const std::string& after) {
  return std::regex_search(before, compiled(R"(\b(no|non|not|never|without)[ -]+$)")) ||
         std::regex_search(after, compiled(R"(^[ :=]*(off|disabled|false|not used)\b)"));
}

}  // namespace

std::optional<std::vector<std::string>> Sentence::take_first(const char* phrase) {
  if (rest_.find_first_not_of(' ') == std::string::npos) return std::nullopt;
  // After a letter, a hyphen or an underscore, the match would be the rest of another word.
  const std::regex& words = compiled("(?:^|[^a-z0-9_-])(" + std::string(phrase) + ")(?![a-z0-9_])");
  std::optional<std::vector<std::string>> groups;
  std::smatch match;
  for (std::size_t from = 0; from < rest_.size();) {
    const std::string tail = rest_.substr(from);
    if (!std::regex_search(tail, match, words)) break;
    const std::size_t begin = from + static_cast<std::size_t>(match.position(1)),
                      length = static_cast<std::size_t>(match.length(1));
    from = begin + std::max<std::size_t>(1, length);
    if (denied(rest_.substr(0, begin), rest_.substr(begin + length))) continue;
    if (!groups) groups.emplace(match.begin(), match.end());
    rest_.replace(begin, length, length, ' ');
  }
  return groups;
}

std::optional<std::string> Sentence::take_value(const char* phrase) {
  const auto groups = take_first(phrase);
  return groups ? std::optional(groups->at(2)) : std::nullopt;
}

std::string Sentence::not_understood() const {
  std::string out;
  const std::regex& breaks = compiled(R"([;,()+/:\[\]]+)");
  for (std::sregex_token_iterator it(rest_.begin(), rest_.end(), breaks, -1), end; it != end; ++it) {
    const std::string part = std::regex_replace(it->str(), compiled(R"(^[ -]+|[ -]+$|( ) +)"), "$1"),
                      said = std::regex_replace(part, compiled(R"(\b(and|as|by|in|of|on|over|the|to|with|x)\b)"), "");
    if (std::regex_search(said, compiled("[a-z0-9]"))) out += (out.empty() ? "" : ", ") + part;
  }
  return out;
}

}  // namespace wt
