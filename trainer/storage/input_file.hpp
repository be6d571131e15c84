// A file opened for reading.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "configs/base/descriptor.hpp"

namespace wt {

class InputFile {
 public:
  /// Throws StoreFailed{not_found} where it does not exist, Error{runtime} where it cannot be read.
  explicit InputFile(const std::filesystem::path& path);

  int fd() const { return file_.get(); }
  std::uint64_t bytes() const;
  /// Reads at most into.size() bytes; 0 at the file's end.
  std::size_t read_some(std::string& into) const;

 private:
  [[noreturn]] void fail(int error) const;

  std::filesystem::path path_;
  Descriptor file_;
};

[[noreturn]] void fail_missing(const std::filesystem::path& path);

}  // namespace wt
