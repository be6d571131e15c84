#include "trainer/data/pack_inputs.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "configs/base/error.hpp"

namespace wt {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void unreadable(const fs::path& file, const std::string& why) {
  throw_usage(
      "{}: cannot be read: {}; allowed are readable files of text or JSON lines, plain or gzip, and directories of "
      "them; check path and permissions",
      file.string(), why);
}

/// Regular files below a directory, sorted; empty files are only counted.
std::vector<PackInput> walk(const fs::path& directory, std::int64_t& empty_files) {
  std::vector<PackInput> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!fs::is_regular_file(entry->symlink_status())) continue;
    const std::uint64_t size = entry->file_size();
    if (size == 0) {
      ++empty_files;
    } else {
      found.push_back({entry->path(), size});
    }
  }
  if (error) unreadable(directory, error.message());
  std::ranges::sort(found, {}, &PackInput::file);
  if (found.empty()) unreadable(directory, "the directory holds no file with text");
  return found;
}

}  // namespace

bool is_json_input(const fs::path& file) {
  const fs::path name = file.extension() == ".gz" ? file.stem() : file.filename();
  const std::array<const char*, 3> endings = {".json", ".jsonl", ".ndjson"};
  return std::ranges::any_of(endings, [&](const char* ending) { return name.extension() == ending; });
}

std::vector<PackInput> list_pack_inputs(const std::vector<fs::path>& paths, std::int64_t& empty_files) {
  if (paths.empty())
    throw_usage("pack: found no input, allowed is at least one text file or directory; name one with --text");
  std::vector<PackInput> inputs;
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
      const std::vector<PackInput> found = walk(path, empty_files);
      inputs.insert(inputs.end(), found.begin(), found.end());
      continue;
    }
    if (!fs::is_regular_file(status)) unreadable(path, error ? error.message() : "it is no regular file");
    const std::uint64_t size = fs::file_size(path, error);
    if (error) unreadable(path, error.message());
    if (size == 0) unreadable(path, "it is empty");
    inputs.push_back({path, size});
  }
  return inputs;
}

PackFile::PackFile(const fs::path& path) : path_(path), file_(::gzopen(path.c_str(), "rbe"), ::gzclose_r) {
  if (!file_) unreadable(path_, std::generic_category().message(errno));
  ::gzbuffer(file_.get(), 1 << 17);
  if (path.extension() == ".gz" && ::gzdirect(file_.get()) != 0) unreadable(path_, "it is named .gz and is not gzip");
}

std::size_t PackFile::read(std::span<char> buffer) {
  const int count = ::gzread(file_.get(), buffer.data(), static_cast<unsigned>(buffer.size()));
  int code = Z_OK;
  const char* const message = ::gzerror(file_.get(), &code);
  // A truncated gzip stream gives Z_BUF_ERROR after its last complete block.
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END))
    unreadable(path_, code == Z_ERRNO ? std::generic_category().message(errno) : message);
  return static_cast<std::size_t>(count);
}

std::uint64_t PackFile::position() const {
  const auto offset = ::gzoffset(file_.get());
  return offset < 0 ? 0 : static_cast<std::uint64_t>(offset);
}

}  // namespace wt
