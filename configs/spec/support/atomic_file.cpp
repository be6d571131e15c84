#include "configs/spec/support/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <string>
#include <system_error>

#include "configs/spec/support/error.hpp"
#include "configs/spec/support/file_write.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

// Turns a file size limit into EFBIG for this thread. The kernel sends SIGXFSZ to the writing thread, and its default
// action would end the process before the temporary file could be removed.
class HoldFileSizeSignal {
 public:
  HoldFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  }
  ~HoldFileSizeSignal() {
    const timespec at_once{};
    if (!was_pending_)
      while (sigtimedwait(&signal_, nullptr, &at_once) == SIGXFSZ) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HoldFileSizeSignal(const HoldFileSizeSignal&) = delete;
  HoldFileSizeSignal& operator=(const HoldFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool was_pending_ = false;
};

[[noreturn]] void fail(const fs::path& file, const char* call, int error) {
  throw_error(Code::runtime, "{}: not written: {} failed: {}; free space or choose another path", file.string(), call,
              std::generic_category().message(error));
}

// Closes on every path; removes the temporary unless it was renamed.
class Temporary {
 public:
  Temporary(const fs::path& target, mode_t mode) : target_(target) {
    static std::atomic<unsigned> count{0};
    const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
    do {  // a name of its own: the target's may already be as long as a name can be
      path_ = folder / fmt::format(".windtunnel-{}-{}.tmp", getpid(), count++);
      fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ < 0) fail(target_, "open of a temporary file in its folder", errno);
  }
  ~Temporary() {
    if (fd_ >= 0) close(fd_);
    if (!renamed_) unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  int fd() const { return fd_; }
  void rename_to_target() {
    if (fsync(fd_) != 0) fail(target_, "fsync", errno);
    const int fd = fd_;
    fd_ = -1;  // close releases the descriptor even when it reports an error
    if (close(fd) != 0) fail(target_, "close", errno);
    if (rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "rename", errno);
    renamed_ = true;
  }

 private:
  const fs::path& target_;
  fs::path path_;
  int fd_ = -1;
  bool renamed_ = false;
};

void write_all(int fd, std::string_view bytes, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t written = write_some(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(file, "write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_folder(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // a folder one may write but not read: the rename itself has succeeded
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  if (error != 0 && error != EINVAL)  // EINVAL: a file system without folder fsync
    throw_error(Code::runtime, "{}: written, but fsync of its folder failed: {}; a crash may undo the write",
                file.string(), std::generic_category().message(error));
}

void write_through(const fs::path& file, std::string_view bytes) {
  const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) fail(file, "open", errno);
  try {
    write_all(fd, bytes, file);
  } catch (...) {
    close(fd);
    throw;
  }
  if (close(fd) != 0) fail(file, "close", errno);
}

}  // namespace

void write_file_atomically(const fs::path& file, std::string_view bytes) {
  const HoldFileSizeSignal hold;
  std::error_code ignored;
  const fs::path target = fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, ignored) : file;
  struct stat old {};
  const bool exists = stat(target.c_str(), &old) == 0;
  if (exists && S_ISDIR(old.st_mode)) fail(file, "open", EISDIR);
  if (exists && !S_ISREG(old.st_mode)) return write_through(target, bytes);

  Temporary temporary(target, 0666);
  if (exists && fchmod(temporary.fd(), old.st_mode & 07777) != 0) fail(file, "fchmod", errno);
  write_all(temporary.fd(), bytes, file);
  temporary.rename_to_target();
  sync_folder(target);
}

}  // namespace wt
