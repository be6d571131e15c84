// What a process tells while it works.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace wt {

/// To standard error. That nobody reads there any more (a terminal that hung up, a pipe without a reader) is no
/// failure.
template <class... T>
void print_error(fmt::format_string<T...> text, T&&... values) {
  const std::string line = fmt::format(text, std::forward<T>(values)...);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// An error as it fits a screen, whatever file it quotes: of more than 4,000 bytes, its begin and its end.
std::string fitting(const std::string& message);

/// Standard input, output and error that are closed become /dev/null: the next file would get their number, and what is
/// told would be written into it. Call it before any file is opened.
void open_standard_streams();

}  // namespace wt
