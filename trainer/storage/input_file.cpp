#include "trainer/storage/input_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "trainer/storage/store.hpp"

namespace wt {

void fail_missing(const std::filesystem::path& path) {
  throw StoreFailed(StoreFailed::Kind::not_found,
                    fmt::format("{}: found no such file, needs one; check its name", path.string()));
}

InputFile::InputFile(const std::filesystem::path& path) : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!file_.is_open() && (errno == ENOENT || errno == ENOTDIR)) fail_missing(path);
  if (!file_.is_open()) fail(errno);
}

std::uint64_t InputFile::bytes() const {
  struct stat status {};
  if (fstat(fd(), &status) != 0) fail(errno);
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t InputFile::read_some(std::string& into) const {
  for (;;) {
    const ssize_t n = ::read(fd(), into.data(), into.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) fail(errno);
  }
}

void InputFile::fail(int error) const {
  throw_runtime("{}: cannot be read: {}; check the file and its disk", path_.string(),
                std::generic_category().message(error));
}

}  // namespace wt
