// Numbers in texts.
#pragma once
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace wt {

/// The number that the whole text is, if it is one.
template <typename Number>
std::optional<Number> parsed(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && last == end ? std::optional(value) : std::nullopt;
}

}  // namespace wt
