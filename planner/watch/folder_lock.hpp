// One watch at a time acts on a run.
#pragma once
#include <filesystem>

namespace wt {

/// Holds a folder until it is destroyed; hooks do not inherit it. A file system without locks is trusted.
class FolderLock {
 public:
  /// Throws Error{usage} where another process holds the folder.
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace wt
