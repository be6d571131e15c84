// A file opened for reading.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace wt {

class InputFile {
 public:
  /// Throws StoreFailed{not_found} where it does not exist, Error{runtime} where it cannot be read.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  int fd() const { return fd_; }
  std::uint64_t bytes() const;
  /// Reads at most into.size() bytes; 0 at the file's end.
  std::size_t read_some(std::string& into) const;

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  int fd_;
};

[[noreturn]] void fail_missing(const std::filesystem::path& path);

}  // namespace wt
