// File operations of the data path that say what failed and never leave a half-written file under its final name.
#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace wt::detail {

/// Creates a new file, writes all of it and syncs it to disk. Throws Error{runtime} (full disk, permissions).
void write_synced(const std::filesystem::path& file, std::string_view head, std::string_view body = {});
/// Syncs a directory's entries. Throws Error{runtime}.
void sync_directory(const std::filesystem::path& directory);
/// Creates an empty directory beside `target`, named after it. Throws Error{runtime}.
std::filesystem::path make_directory_beside(const std::filesystem::path& target);
/// Puts the finished directory in the place of `target`, in one step where the file system can exchange two names, and
/// removes what stood there. Throws Error{runtime}.
void move_into_place(const std::filesystem::path& finished, const std::filesystem::path& target);

/// A file mapped for reading. The mapping outlives a rename or removal of the file.
class MappedFile {
 public:
  /// Throws Error{usage} when the file does not exist or cannot be read.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace wt::detail
