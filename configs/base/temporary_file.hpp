// A file written under a temporary name and then renamed: readers see it whole or not at all.
#pragma once
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigset_t is POSIX
#include <sys/types.h>

#include <filesystem>

#include "configs/base/descriptor.hpp"

namespace wt {

/// Makes a write beyond the file size limit fail with EFBIG in the calling thread. By default the kernel sends SIGXFSZ,
/// which would end the process before the temporary file is removed.
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

/// The destructor closes the file, and removes it unless it was renamed.
class TemporaryFile {
 public:
  /// Opens a new file for writing in the target's folder, which must exist. Throws as fail_write().
  TemporaryFile(std::filesystem::path target, mode_t mode = 0666);
  ~TemporaryFile();

  int fd() const { return file_.get(); }
  const std::filesystem::path& path() const { return path_; }
  /// fsyncs, closes, renames, fsyncs the folder. Throws as fail_write(). If only the folder's fsync fails, the target
  /// has already been replaced.
  void rename_to_target();

 private:
  std::filesystem::path target_, path_;
  Descriptor file_;
  bool renamed_ = false;
};

}  // namespace wt
