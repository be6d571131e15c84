// One process at a time does a thing to a folder: trains into it, or acts on the run in it. The lock is the kernel's
// (flock), so that it goes with the process that held it, however that ended, and with the children that were given it.
// File systems that machines share keep it among them as far as they have flock: NFS from Linux 2.6.12 on, Lustre
// mounted with `flock`; under `localflock` each machine has its own.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

namespace wt {

class FolderLock {
 public:
  struct Use {
    std::string file;         ///< in the folder, there while it is held: ".train.lock"
    std::string what;         ///< that one is alone at, in words: "launch that trains into it"
    std::string launch = {};  ///< see launch_name(); "" = none
  };
  /// Where the holder is gone and only its children still end, waits for them up to a minute; likewise, two minutes,
  /// for a holder of the same launch, which is ending or whose lock a file server keeps for a while. Throws
  /// Error{usage} naming host, process and time where another process holds the folder. A folder that cannot be written
  /// to is trusted; a file system without locks, too, which stderr says.
  FolderLock(const std::filesystem::path& folder, Use use);
  /// The file goes, unless children still hold it.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// For children that are to hold it, too; -1: none. It is closed at exec unless they are given it.
  int descriptor() const { return fd_; }

 private:
  bool take();
  void wait_or_refuse();
  void say_who() const;

  std::filesystem::path path_;
  Use use_;
  int fd_ = -1;
};

}  // namespace wt
