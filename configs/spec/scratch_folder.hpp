// A folder for what is needed until its owner is done. A process that a signal ends leaves it.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

class ScratchFolder {
 public:
  /// `parent`/`name`-XXXXXX, six letters that make it new; `parent` is made, too. Throws Error{runtime} where it cannot be made.
  explicit ScratchFolder(const std::string& name, const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  /// With all that is in it.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace wt
