// A temporary folder that its owner removes. It remains if a signal ends the process.
#pragma once
#include <filesystem>
#include <string>

namespace wt {

class ScratchFolder {
 public:
  /// Creates `parent`/`name`-XXXXXX with six random letters. The default parent is the system's folder for temporary
  /// files; a missing parent is created. Throws Error{runtime} where that fails.
  explicit ScratchFolder(const std::string& name, std::filesystem::path parent = {});
  /// Removes the folder with its content.
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace wt
