// Only one watch at a time acts on a run.
#pragma once
#include <filesystem>

namespace wt {

/// Locks a folder until destruction. Hooks do not inherit the lock. A file system without locks counts as locked.
class FolderLock {
 public:
  /// Throws Error{usage} if another process holds the lock.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace wt
