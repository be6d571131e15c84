#include "configs/files/pipeline_layout.hpp"

#include <algorithm>
#include <cctype>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"

namespace wt {
namespace {

constexpr std::int64_t kMostLetters = 100'000;  // after repeats are expanded; a longer text is a typing error

/// Expands the repeats of the text.
class Unrolled {
 public:
  Unrolled(const std::string& text, const std::string& where) : text_(text), where_(where) {
    for (const char c : text)
      if (c != ',' && !std::isspace(static_cast<unsigned char>(c))) letters_ += c;
  }

  std::string run() {
    std::string out = sequence(false);
    if (at_ < letters_.size()) fail("')' without '('");
    return out;
  }

  [[noreturn]] void fail(const std::string& found) const {
    throw_usage(
        "{}: '{}': found {}; needs E (embedding), t (layer), m (module of multi-token prediction), L (loss), | between "
        "chunks, x*n and (..)*n, as Megatron-Core's pipeline_model_parallel_layout",
        where_, text_, found);
  }

 private:
  std::string sequence(bool inside) {
    std::string out;
    while (at_ < letters_.size() && letters_[at_] != ')') {
      const char c = letters_[at_++];
      std::string part(1, c);
      if (c == '(') {
        if (inside) fail("'(' inside '('");
        part = sequence(true);
        if (at_++ >= letters_.size()) fail("'(' without ')'");
        if (at_ >= letters_.size() || letters_[at_] != '*') fail("(..) without *n");
      } else if (std::string("EtmL|").find(c) == std::string::npos) {
        fail(fmt::format("'{}'", c));
      }
      const std::int64_t times = count();
      if (times * static_cast<std::int64_t>(part.size()) > kMostLetters) fail(fmt::format("{} repeats", times));
      for (std::int64_t i = 0; i < times; ++i) out += part;
    }
    return out;
  }

  /// The repeat count after a letter or a closing bracket; 1 without "*".
  std::int64_t count() {
    if (at_ >= letters_.size() || letters_[at_] != '*') return 1;
    const std::size_t first = ++at_;
    while (at_ < letters_.size() && std::isdigit(static_cast<unsigned char>(letters_[at_]))) ++at_;
    const std::string digits = letters_.substr(first, at_ - first);
    if (digits.empty() || digits.size() > 6 || std::stoll(digits) < 1)
      fail(fmt::format("'*{}', not a number of repeats", digits));
    return std::stoll(digits);
  }

  const std::string& text_;
  const std::string& where_;
  std::string letters_;
  std::size_t at_ = 0;
};

std::vector<std::string> chunks_of(const std::string& letters) {
  std::vector<std::string> out(1);
  for (const char c : letters)
    if (c == '|')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

}  // namespace

PipelineLayout pipeline_layout_from_string(const std::string& text, const std::string& where) {
  Unrolled unrolled(text, where);
  const std::string letters = unrolled.run();
  if (letters.empty() || letters.front() != 'E' || std::ranges::count(letters, 'E') != 1)
    unrolled.fail("E elsewhere than first and once");
  if (letters.back() != 'L' || std::ranges::count(letters, 'L') != 1) unrolled.fail("L elsewhere than last and once");
  const std::size_t module = letters.find('m');
  if (module != std::string::npos && letters.find('t', module) != std::string::npos)
    unrolled.fail("a layer t behind a module m");

  const std::vector<std::string> chunks = chunks_of(letters);
  PipelineLayout out;
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    if (chunks[c].empty())
      unrolled.fail(fmt::format("nothing in chunk {} of {}, which is not modelled", c + 1, chunks.size()));
    out.layers.push_back(std::ranges::count(chunks[c], 't'));
    const std::int64_t modules = std::ranges::count(chunks[c], 'm');
    if (modules == 0) continue;
    if (out.modules > 0) unrolled.fail("modules m in several chunks");
    if (c + 2 < chunks.size())
      unrolled.fail(fmt::format("modules m in chunk {} of {}, before the last two", c + 1, chunks.size()));
    out.modules = modules;
    out.modules_before_head = c + 1 < chunks.size();
  }
  return out;
}

std::string to_string(const PipelineLayout& layout) {
  const auto repeated = [](const char* letter, std::int64_t n) {
    return n == 0 ? "" : n == 1 ? letter : fmt::format("{}*{}", letter, n);
  };
  auto chunks = mapped(layout.layers, [&](std::int64_t layers) { return repeated("t", layers); });
  chunks.front().insert(0, "E");
  chunks.at(chunks.size() - (layout.modules_before_head ? 2 : 1)) += repeated("m", layout.modules);
  chunks.back() += "L";
  std::string out;
  for (auto chunk = chunks.begin(); chunk + 1 != chunks.end();) {  // the last chunk, with its L, never repeats
    const auto next = std::find_if(chunk, chunks.end(), [&](const std::string& other) { return other != *chunk; });
    out += next - chunk == 1 ? *chunk + "|" : fmt::format("({}|)*{}", *chunk, next - chunk);
    chunk = next;
  }
  return out + chunks.back();
}

}  // namespace wt
