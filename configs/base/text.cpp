#include "configs/base/text.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string counted(std::int64_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string shortened(const std::string& text) {
  std::size_t most = 200;
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;  // no part of a character
  return fmt::format("{}... ({} bytes)", text.substr(0, most), text.size());
}

std::string read_file(const std::filesystem::path& file, const std::string& needs) {
  std::ifstream in(file, std::ios::binary);
  std::error_code none;
  if (!in || std::filesystem::is_directory(file, none))
    throw_usage("{}: cannot be read; needs {}", shortened(file.string()), needs);
  std::ostringstream bytes;
  if (in.peek() != std::ifstream::traits_type::eof()) bytes << in.rdbuf();  // << of an empty buffer sets failbit
  if (!bytes) throw_usage("{}: cannot be read; needs {}", file.string(), needs);
  return std::move(bytes).str();
}

}  // namespace wt
