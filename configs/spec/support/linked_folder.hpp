// Folders that may be links to others, elsewhere.
#pragma once
#include <filesystem>

namespace wt {

/// The folder with all that is in it, also where it is a link: its target goes, too. Throws fs::filesystem_error.
/// Whether there was one.
inline bool remove_linked_folder(const std::filesystem::path& folder) {
  if (std::filesystem::is_symlink(folder)) std::filesystem::remove_all(std::filesystem::read_symlink(folder));
  return std::filesystem::remove_all(folder) > 0;
}

}  // namespace wt
