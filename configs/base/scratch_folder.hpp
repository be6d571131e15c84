// A folder for what is needed until its owner is done. A process that a signal ends leaves it.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

class ScratchFolder {
 public:
  /// `parent`/`name`-XXXXXX, six letters that make it new, in the system's folder for temporary files where no parent
  /// is given. A parent that is missing is made. Throws Error{runtime} where that cannot be.
  explicit ScratchFolder(const std::string& name, std::filesystem::path parent = {});
  /// With all that is in it.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace wt
