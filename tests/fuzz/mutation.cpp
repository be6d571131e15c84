#include "tests/fuzz/mutation.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

namespace wt::fuzz {
namespace {

/// Where readers of text and of JSON, YAML, TOML, CSV and XML are known to fail.
const std::vector<std::string>& hard_words() {
  static const std::vector<std::string> kWords{"0",
                                               "-1",
                                               "1",
                                               "-0",
                                               "1e308",
                                               "1e309",
                                               "-1e309",
                                               "1e-320",
                                               "0.1",
                                               "1e30",
                                               "2147483647",
                                               "4294967295",
                                               "4294967296",
                                               "4611686018427387904",
                                               "9223372036854775807",
                                               "9223372036854775808",
                                               "-9223372036854775808",
                                               "18446744073709551615",
                                               "18446744073709551616",
                                               "nan",
                                               "inf",
                                               ".inf",
                                               ".nan",
                                               "null",
                                               "~",
                                               "true",
                                               "false",
                                               "\"\"",
                                               "''",
                                               "[]",
                                               "{}",
                                               "[[]]",
                                               "{\"a\":{}}",
                                               "---",
                                               "- ",
                                               ": ",
                                               "&a ",
                                               "*a",
                                               "<<: *a",
                                               "!!int ",
                                               "${variables.x}",
                                               "%YAML 1.2",
                                               "\\u0000",
                                               "\\ud800",
                                               "\xff\xfe",
                                               "\xf0\x9f\x98\x80",
                                               "\r\n",
                                               "\n",
                                               "\t",
                                               ",",
                                               ";",
                                               "\"",
                                               "'",
                                               "`",
                                               "$(id)",
                                               "\\",
                                               "/",
                                               "../",
                                               "#",
                                               "=",
                                               "1d",
                                               "1ba",
                                               "1e400tok",
                                               "9e18ep",
                                               "1GB/s",
                                               "1s",
                                               "-5ms",
                                               "100%"};
  return kWords;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-'; }

struct Range {
  std::size_t begin = 0, size = 0;
};

Range some_range(const std::string& text, Draws& draws) {
  const std::size_t begin = draws.below(text.size() + 1);
  // Mostly short, sometimes all that follows.
  const std::size_t most = draws.below(4) > 0 ? std::min<std::size_t>(16, text.size() - begin) : text.size() - begin;
  return {begin, draws.below(most + 1)};
}

Range some_line(const std::string& text, Draws& draws) {
  const std::size_t at = draws.below(text.size());
  const std::size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::size_t end = text.find('\n', at);
  return {begin, (end == std::string::npos ? text.size() : end + 1) - begin};
}

/// The word at some place, or the next one; empty at the end where there is none.
Range some_word(const std::string& text, Draws& draws, bool number) {
  std::size_t begin = draws.below(text.size());
  const auto starts = [&](char c) { return number ? std::isdigit(static_cast<unsigned char>(c)) != 0 : in_word(c); };
  while (begin < text.size() && !starts(text[begin])) ++begin;
  while (begin > 0 && begin < text.size() && in_word(text[begin - 1])) --begin;
  std::size_t end = begin;
  while (end < text.size() && in_word(text[end])) ++end;
  return {begin, end - begin};
}

std::string repeated(const std::string& what, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times && out.size() < kLongestInput; ++i) out += what;
  return out;
}

std::string some_hard_word(const std::vector<std::string>& words, Draws& draws) {
  const auto& hard = hard_words();
  return words.empty() || draws.below(2) == 0 ? hard[draws.below(hard.size())] : words[draws.below(words.size())];
}

void change(std::string& text, const std::vector<std::string>& seeds, const std::vector<std::string>& words,
            Draws& draws) {
  if (text.empty()) {
    text = some_hard_word(words, draws);
    return;
  }
  switch (draws.below(16)) {
    case 0:
      text[draws.below(text.size())] ^= static_cast<char>(1 << draws.below(8));
      break;
    case 1:
      text[draws.below(text.size())] = static_cast<char>(draws.next());
      break;
    case 2: {
      const Range r = some_range(text, draws);
      text.erase(r.begin, r.size);
      break;
    }
    case 3: {  // a range to another place
      const Range r = some_range(text, draws);
      text.insert(draws.below(text.size() + 1), text.substr(r.begin, r.size));
      break;
    }
    case 4:
    case 5:
    case 6: {  // a number at its limits
      const Range r = some_word(text, draws, true);
      text.replace(r.begin, r.size, hard_words()[draws.below(draws.below(3) > 0 ? 21 : hard_words().size())]);
      break;
    }
    case 7:
    case 8: {
      const Range r = some_word(text, draws, false);
      text.replace(r.begin, r.size, some_hard_word(words, draws));
      break;
    }
    case 9: {
      const std::size_t at = draws.below(text.size() + 1);
      text.insert(at, some_hard_word(words, draws));
      break;
    }
    case 10: {  // a line again, or not at all
      const Range r = some_line(text, draws);
      if (draws.below(2) == 0)
        text.insert(r.begin, text.substr(r.begin, r.size));
      else
        text.erase(r.begin, r.size);
      break;
    }
    case 11: {  // lines exchanged
      const Range r = some_line(text, draws);
      const std::string line = text.substr(r.begin, r.size);
      text.erase(r.begin, r.size);
      text.insert(text.empty() ? 0 : some_line(text, draws).begin, line);
      break;
    }
    case 12: {  // the begin of one seed, the end of another
      const std::string& other = seeds[draws.below(seeds.size())];
      const std::size_t end = draws.below(text.size() + 1), begin = draws.below(other.size() + 1);
      text = text.substr(0, end) + other.substr(begin);
      break;
    }
    case 13: {  // deep or long
      static const std::array<const char*, 7> kOpen{"[", "{\"a\":", "- ", "(", "<a>", "{a: ", "["};
      const std::size_t times = std::size_t{1} << draws.below(draws.below(64) == 0 ? 18 : 11);
      if (draws.below(2) == 0) {
        const std::size_t at = draws.below(text.size() + 1), open = draws.below(kOpen.size());
        text.insert(at, repeated(kOpen[open], times));
      } else {
        const Range r = some_range(text, draws);
        text.insert(r.begin, repeated(text.substr(r.begin, std::min<std::size_t>(r.size, 64)), times));
      }
      break;
    }
    case 14: {  // a little-endian number at its limits
      static const std::array<std::uint64_t, 8> kLimits{
          0, 1, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff, 0x4000000000000000, 0xfffffff8};
      const std::uint64_t limit = kLimits[draws.below(kLimits.size())], value = limit + draws.below(3) - 1;
      const std::size_t at = draws.below(text.size()), bytes = std::size_t{1} << draws.below(4);
      for (std::size_t i = 0; i < bytes && at + i < text.size(); ++i)
        text[at + i] = static_cast<char>(value >> (8 * i));
      break;
    }
    default:
      text.resize(draws.below(text.size()));
      break;
  }
}

}  // namespace

std::uint64_t Draws::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<std::string> words_of(const std::vector<std::string>& seeds) {
  std::set<std::string> words;
  for (const std::string& seed : seeds)
    for (std::size_t begin = 0; begin < seed.size();) {
      std::size_t end = begin;
      while (end < seed.size() && in_word(seed[end])) ++end;
      if (end > begin && end - begin < 40) words.insert(seed.substr(begin, end - begin));
      begin = end + 1;
    }
  return {words.begin(), words.end()};
}

std::string mutated(const std::vector<std::string>& seeds, const std::vector<std::string>& words, Draws& draws) {
  std::string text = seeds[draws.below(seeds.size())];
  for (std::size_t left = std::size_t{1} << draws.below(4); left > 0; --left) change(text, seeds, words, draws);
  if (text.size() > kLongestInput) text.resize(kLongestInput);
  return text;
}

}  // namespace wt::fuzz
