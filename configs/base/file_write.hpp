// write(2) as all files of ours go out with it, and the place where a drill fills the disk.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace wt {

struct WriteLimit {
  /// That can still be written, over all files; then ENOSPC. None: the disk is what it is.
  std::optional<std::int64_t> bytes;
  std::function<void(int error)> failed;  ///< hears of the first write that fails
};
/// From now on, for the rest of the process.
void limit_writes(WriteLimit limit);

/// As write(2): the bytes written, which may be fewer, or -1 and errno.
ssize_t write_some(int fd, const void* bytes, std::size_t n);

}  // namespace wt
