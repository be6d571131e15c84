#include "configs/base/temporary_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {

namespace fs = std::filesystem;

HoldFileSizeSignal::HoldFileSizeSignal() {
  sigemptyset(&signal_);
  sigaddset(&signal_, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  sigset_t pending;
  was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

HoldFileSizeSignal::~HoldFileSizeSignal() {
  const timespec at_once{};
  if (!was_pending_)
    while (sigtimedwait(&signal_, nullptr, &at_once) == SIGXFSZ) {
    }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void fail_write(const fs::path& file, const char* call, int error) {
  throw_runtime("{}: not written: {} failed: {}; free space or choose another path", file.string(), call,
                std::generic_category().message(error));
}

TemporaryFile::TemporaryFile(fs::path target, mode_t mode) : target_(std::move(target)) {
  static std::atomic<unsigned> count{0};
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  do {  // not the target's name with a suffix: that may exceed the longest file name
    path_ = folder / fmt::format(".windtunnel-{}-{}.tmp", getpid(), count++);
    file_ = Descriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  } while (!file_.is_open() && errno == EEXIST);
  if (!file_.is_open()) fail_write(target_, "open of a temporary file in its folder", errno);
}

TemporaryFile::~TemporaryFile() {
  if (!renamed_) unlink(path_.c_str());
}

void TemporaryFile::rename_to_target() {
  if (fsync(fd()) != 0) fail_write(target_, "fsync", errno);
  // close releases the descriptor even when it reports an error
  if (close(file_.release()) != 0) fail_write(target_, "close", errno);
  if (rename(path_.c_str(), target_.c_str()) != 0) fail_write(target_, "rename", errno);
  renamed_ = true;
  const fs::path folder = target_.has_parent_path() ? target_.parent_path() : fs::path(".");
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return;  // a folder that may be written but not read; the rename itself has succeeded
  const int error = fsync(opened.get()) == 0 ? 0 : errno;
  if (error != 0 && error != EINVAL)  // EINVAL: a file system without folder fsync
    throw_runtime("{}: written, but fsync of its folder failed: {}; a crash may undo the write", target_.string(),
                  std::generic_category().message(error));
}

}  // namespace wt
