// File operations with precise errors, which never leave an incomplete file under its final name.
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
/// Creates an empty temporary directory next to `target`. Throws Error{runtime}.
std::filesystem::path make_directory_beside(const std::filesystem::path& target);
/// Replaces `target` by the finished directory, atomically where the file system can exchange two names, and removes
/// the old one. Throws Error{runtime}.
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
