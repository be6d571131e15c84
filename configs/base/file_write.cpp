#include "configs/base/file_write.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

namespace wt {
namespace {

std::atomic<bool> limited{false};
std::mutex mutex;
WriteLimit limit;

/// How many of n bytes still fit on the limited disk; 0 = none.
std::size_t room(std::size_t n) {
  const std::lock_guard lock(mutex);
  if (!limit.bytes) return n;
  const auto part = std::min<std::size_t>(n, static_cast<std::size_t>(std::max<std::int64_t>(*limit.bytes, 0)));
  *limit.bytes -= static_cast<std::int64_t>(part);
  return part;
}

void tell(int error) {
  std::function<void(int)> failed;
  {
    const std::lock_guard lock(mutex);
    failed = std::exchange(limit.failed, {});
  }
  if (failed) failed(error);
}

}  // namespace

void limit_writes(WriteLimit to) {
  const std::lock_guard lock(mutex);
  limit = std::move(to);
  limited = true;
}

ssize_t write_some(int fd, const void* bytes, std::size_t n) {
  if (!limited) return ::write(fd, bytes, n);
  const std::size_t part = room(n);
  const ssize_t done = part == 0 && n > 0 ? -1 : ::write(fd, bytes, part);
  if (done >= 0) return done;
  const int error = part == 0 ? ENOSPC : errno;
  tell(error);
  errno = error;
  return -1;
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write_some(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace wt
