// write(2) for every file that we write, with a limit by which drills fill the disk.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace wt {

struct WriteLimit {
  /// Bytes that can still be written over all files together; then ENOSPC. None: no limit.
  std::optional<std::int64_t> bytes;
  std::function<void(int error)> failed;  ///< called with errno at the first write that fails
};
/// Applies to the rest of the process.
void limit_writes(WriteLimit limit);

/// Like write(2): returns the bytes written, which may be fewer, or -1 with errno set.
ssize_t write_some(int fd, const void* bytes, std::size_t n);
/// Writes all of it; returns 0, or errno of the write that failed.
int write_all(int fd, std::string_view bytes);

}  // namespace wt
