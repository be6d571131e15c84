// Removing folders that may be symbolic links.
#pragma once
#include <filesystem>
#include <system_error>

namespace wt {

/// Removes the folder and its content; of a link, the target as well. Others may write and remove files in it at the
/// same time. Returns whether the folder existed. Throws fs::filesystem_error.
inline bool remove_linked_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const auto remove = [](const fs::path& each) {
    std::error_code failed;
    std::uintmax_t removed = 0;
    for (int tries = 0; tries < 100; ++tries)
      if (removed = fs::remove_all(each, failed); !failed) return removed > 0 || tries > 0;
    throw fs::filesystem_error("could not be removed", each, failed);
  };
  if (fs::is_symlink(folder)) remove(fs::read_symlink(folder));
  return remove(folder);
}

}  // namespace wt
