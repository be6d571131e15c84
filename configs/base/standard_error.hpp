// Messages to standard error.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace wt {

/// Prints to standard error. Failed writes are ignored: the terminal may have hung up, the pipe may have no reader.
template <class... T>
void print_error(fmt::format_string<T...> text, T&&... values) {
  const std::string line = fmt::format(text, std::forward<T>(values)...);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// An error's message shortened for a screen: above 4,000 bytes, only its begin and its end.
std::string fitting(const std::string& message);

/// Opens /dev/null as standard input, output or error where that is closed. Otherwise the next file that is opened
/// would receive its descriptor, and messages. Call it before any file is opened.
void open_standard_streams();

}  // namespace wt
