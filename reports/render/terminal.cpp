#include "reports/render/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace wt {

bool use_color(Color wanted, int descriptor) {
  if (wanted != Color::automatic) return wanted == Color::always;
  const char *no_color = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  if ((no_color && *no_color) || (term && std::string_view(term) == "dumb")) return false;
  return isatty(descriptor) == 1;
}

std::size_t terminal_width(int descriptor) {
  if (isatty(descriptor) != 1) return 0;
  const char* columns = std::getenv("COLUMNS");
  const std::string_view wanted = columns ? columns : "";
  unsigned short width = 0;  // as in winsize
  const auto [end, failure] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), width);
  if (failure == std::errc() && end == wanted.data() + wanted.size() && width > 0) return width;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace wt
