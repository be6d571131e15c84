#include "configs/base/utf8.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "configs/base/error.hpp"

namespace wt {

bool is_utf8(const std::string& text) {
  if (std::ranges::none_of(text, [](char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; })) return true;
  try {
    (void)nlohmann::json(text).dump();  // throws for invalid UTF-8
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

void need_utf8(const std::string& text, const std::string& origin) {
  if (is_utf8(text)) return;
  std::istringstream lines(text);  // no UTF-8 character contains a newline byte
  int number = 1;
  for (std::string line; std::getline(lines, line) && is_utf8(line);) ++number;
  throw_usage("{}:{}: found bytes that are no UTF-8, needs a text; convert it", origin, number);
}

}  // namespace wt
