#include "configs/spec/support/standard_error.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace wt {

void open_standard_streams() {
  for (int stream = 0; stream <= STDERR_FILENO; ++stream)
    if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) return;
}

}  // namespace wt
