#include "trainer/data/detail/range_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "configs/base/error.hpp"

namespace wt::detail {
namespace {

// Open file description locks: unlike POSIX locks, they remain when another descriptor of the file is closed.
struct flock range_of(short kind, std::uint64_t place) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(place);
  range.l_len = 1;
  return range;
}

[[noreturn]] void cannot_lock(const std::filesystem::path& file) {
  throw_runtime(
      "{}: locking failed: {}; allowed is a folder that can be written, on a file system with locks; choose another "
      "folder as `local`",
      file.string(), std::generic_category().message(errno));
}

}  // namespace

RangeLock::RangeLock(const std::filesystem::path& file)
    : file_(file), opened_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666)) {
  if (!opened_.is_open()) cannot_lock(file_);
}

bool RangeLock::set(int command, short kind, std::uint64_t place) {
  struct flock range = range_of(kind, place);
  while (::fcntl(descriptor(), command, &range) != 0) {
    if (errno == EINTR) continue;
    if (command == F_OFD_SETLK && (errno == EAGAIN || errno == EACCES)) return false;
    cannot_lock(file_);
  }
  return true;
}

bool RangeLock::try_lock(std::uint64_t place) { return set(F_OFD_SETLK, F_WRLCK, place); }
void RangeLock::lock(std::uint64_t place) { set(F_OFD_SETLKW, F_WRLCK, place); }
void RangeLock::lock_shared(std::uint64_t place) { set(F_OFD_SETLKW, F_RDLCK, place); }
void RangeLock::unlock(std::uint64_t place) { set(F_OFD_SETLK, F_UNLCK, place); }

bool RangeLock::held_elsewhere(std::uint64_t place) {
  struct flock range = range_of(F_WRLCK, place);
  if (::fcntl(descriptor(), F_OFD_GETLK, &range) != 0) cannot_lock(file_);
  return range.l_type != F_UNLCK;
}

}  // namespace wt::detail
