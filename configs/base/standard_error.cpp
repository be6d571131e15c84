#include "configs/base/standard_error.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace wt {

std::string fitting(const std::string& message) {
  constexpr std::size_t kBegin = 3000, kEnd = 1000;
  if (message.size() <= kBegin + kEnd) return message;
  return fmt::format("{} ... ({} bytes) ... {}", message.substr(0, kBegin), message.size() - kBegin - kEnd,
                     message.substr(message.size() - kEnd));
}

void open_standard_streams() {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
}

}  // namespace wt
