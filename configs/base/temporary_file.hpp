// A file that is written under a temporary name in its folder and then renamed: a reader sees it whole or not at all.
#pragma once
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t is POSIX
#include <sys/types.h>

#include <filesystem>

namespace wt {

/// Turns a file size limit into EFBIG for the calling thread. The kernel sends SIGXFSZ to the thread that writes, and
/// its default action would end the process before the temporary file could be removed.
class HoldFileSizeSignal {
 public:
  HoldFileSizeSignal();
  ~HoldFileSizeSignal();
  HoldFileSizeSignal(const HoldFileSizeSignal&) = delete;
  HoldFileSizeSignal& operator=(const HoldFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
  bool was_pending_ = false;
};

/// Throws Error{runtime} with the file, the call and the system's reason.
[[noreturn]] void fail_write(const std::filesystem::path& file, const char* call, int error);

/// Closes on every path; removes the temporary unless it was renamed.
class TemporaryFile {
 public:
  /// Opens a new file beside `target`, whose folder exists, for writing. Throws as fail_write().
  TemporaryFile(std::filesystem::path target, mode_t mode = 0666);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }
  /// fsyncs, closes, renames, fsyncs the folder. Throws as fail_write(); only where the folder's fsync fails is the
  /// file there all the same.
  void rename_to_target();

 private:
  std::filesystem::path target_, path_;
  int fd_ = -1;
  bool renamed_ = false;
};

}  // namespace wt
