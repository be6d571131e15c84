#include "trainer/data/detail/file_io.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include "configs/base/descriptor.hpp"
#include "configs/base/error.hpp"
#include "configs/base/file_write.hpp"

namespace wt::detail {
namespace fs = std::filesystem;
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const fs::path& path, const char* doing, int error) {
  throw_runtime("{}: {} failed: {}; allowed is a writable place with room; free space or choose another", path.string(),
                doing, reason(error));
}

/// The parent folder of a path: "." for a bare name.
fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

void write_synced(const fs::path& file, std::string_view head, std::string_view body) {
  const Descriptor out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!out.is_open()) fail(file, "creating", errno);
  for (const std::string_view part : {head, body})
    if (const int error = write_all(out.get(), part)) fail(file, "writing", error);
  if (::fsync(out.get()) != 0) fail(file, "syncing", errno);
}

void sync_directory(const fs::path& directory) {
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || ::fsync(opened.get()) != 0) fail(directory, "syncing", errno);
}

fs::path make_directory_beside(const fs::path& target) {
  std::error_code error;
  fs::create_directories(folder_of(target), error);
  if (error) fail(folder_of(target), "creating", error.value());
  std::string name = (folder_of(target) / fmt::format(".{}.partial-XXXXXX", target.filename().string())).string();
  if (::mkdtemp(name.data()) == nullptr) fail(name, "creating", errno);
  // mkdtemp allows only the owner; a data set gets normal directory permissions.
  fs::permissions(name, fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read | fs::perms::others_exec,
                  fs::perm_options::add, error);
  return name;
}

void move_into_place(const fs::path& finished, const fs::path& target) {
  if (::rename(finished.c_str(), target.c_str()) == 0) return sync_directory(folder_of(target));
  // The target is a non-empty directory: exchange the two.
  if (errno != ENOTEMPTY && errno != EEXIST) fail(target, "renaming", errno);
  const bool exchanged = ::renameat2(AT_FDCWD, finished.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0;
  fs::path old = finished;
  if (!exchanged) {
    if (errno != EINVAL && errno != ENOSYS) fail(target, "exchanging", errno);
    old += ".old";  // two renames: a crash between them leaves both directories under temporary names
    if (::rename(target.c_str(), old.c_str()) != 0) fail(target, "renaming", errno);
    if (::rename(finished.c_str(), target.c_str()) != 0) {
      const int error = errno;
      if (::rename(old.c_str(), target.c_str()) != 0) fail(old, "restoring the earlier dataset", errno);
      fail(target, "renaming", error);
    }
  }
  sync_directory(folder_of(target));
  std::error_code ignored;  // only a hidden temporary directory would remain; the new data set is complete
  fs::remove_all(old, ignored);
}

MappedFile::MappedFile(const fs::path& file) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (opened.get() < 0 || ::fstat(opened.get(), &status) != 0)
    throw_usage("{}: cannot be opened: {}; allowed is a readable file; copy it here again", file.string(),
                reason(errno));
  if (!S_ISREG(status.st_mode))
    throw_usage("{}: is not a regular file; allowed is a readable file; copy it here again", file.string());
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, opened.get(), 0);
  if (mapped == MAP_FAILED)
    throw_runtime("{}: mapping {} bytes failed: {}; allowed are files that fit the address space; see ulimit -v",
                  file.string(), size_, reason(errno));
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace wt::detail
