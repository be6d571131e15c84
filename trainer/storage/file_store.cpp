#include "trainer/storage/file_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "configs/base/atomic_file.hpp"
#include "configs/base/clock.hpp"
#include "configs/base/file_write.hpp"
#include "configs/base/temporary_file.hpp"
#include "configs/base/text.hpp"
#include "trainer/storage/input_file.hpp"

namespace wt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = ".windtunnel-";  // used by TemporaryFile

void copy_whole(const fs::path& from, const fs::path& to, double timeout_s, const std::function<void()>& moved) {
  const double begin = steady_s();
  const InputFile in(from);
  const HoldFileSizeSignal hold;
  TemporaryFile out(to);
  std::string buffer(1 << 20, '\0');
  for (std::size_t n = 0; (n = in.read_some(buffer)) > 0;) {
    if (const int error = write_all(out.fd(), {buffer.data(), n})) fail_write(to, "write", error);
    moved();
    if (steady_s() - begin > timeout_s)
      throw StoreFailed(StoreFailed::Kind::unreachable,
                        fmt::format("{}: not read within {:.3g} s; check the file system", from.string(), timeout_s));
  }
  out.rename_to_target();
}

}  // namespace

void check_store_name(const std::string& address, const std::string& name) {
  bool good = !name.empty() && name.find('\0') == std::string::npos && name.size() <= 1024;
  for (std::size_t begin = 0; good && begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    good = !part.empty() && part != "." && part != "..";
    begin = end + 1;
  }
  if (good) return;
  std::string shown = name.substr(0, 100);
  std::ranges::replace_if(
      shown, [](unsigned char c) { return c < ' '; }, '?');
  throw_usage("{}: found the name '{}', allowed are relative paths without '.' and '..'; correct it", address, shown);
}

fs::path FileStore::path_of(const std::string& name) const {
  check_store_name(address(), name);
  return folder_ / name;
}

fs::path FileStore::made_path_of(const std::string& name) const {
  fs::path path = path_of(name);
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed) fail_write(path, "making its folder", failed.value());
  return path;
}

std::optional<std::uint64_t> FileStore::size(const std::string& name) {
  const fs::path path = path_of(name);
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  if (status.type() == fs::file_type::regular)
    if (const auto bytes = fs::file_size(path, failed); !failed) return bytes;
  throw_runtime("{}: found what is no file that can be read{}{}, needs a file; move it away", path.string(),
                failed ? ": " : "", failed ? failed.message() : "");
}

std::string FileStore::read(const std::string& name, std::uint64_t at_most) {
  const fs::path path = path_of(name);
  if (const auto bytes = size(name); !bytes)
    fail_missing(path);
  else if (*bytes > at_most)
    throw_runtime("{}: found {} bytes, allowed are {}; is it the right file?", path.string(), *bytes, at_most);
  return read_file(path, "a file");
}

void FileStore::fetch(const std::string& name, const fs::path& to, double timeout_s) {
  copy_whole(path_of(name), to, timeout_s, [this] { moved(); });
}

void FileStore::put(const std::string& name, std::string_view bytes, bool only_if_absent) {
  const fs::path path = made_path_of(name);
  if (!only_if_absent) return write_file_atomically(path, bytes);
  // A hard link fails if the name exists; rename would replace the existing file.
  static std::atomic<unsigned> count{0};
  const fs::path beside = path.parent_path() / fmt::format("{}put-{}-{}.tmp", kTemporaryPrefix, getpid(), count++);
  write_file_atomically(beside, bytes);
  const int error = link(beside.c_str(), path.c_str()) == 0 ? 0 : errno;
  unlink(beside.c_str());
  if (error == EEXIST)
    throw StoreFailed(
        StoreFailed::Kind::exists,
        fmt::format("{}: is there already and is not replaced; remove it or choose another name", path.string()));
  if (error != 0) fail_write(path, "link", error);
}

void FileStore::upload(const fs::path& from, const std::string& name) {
  copy_whole(from, made_path_of(name), 1e9, [this] { moved(); });
}

std::vector<StoreEntry> FileStore::list(const std::string& prefix) {
  std::vector<StoreEntry> found;
  std::error_code failed, none;
  if (fs::status(folder_, none).type() == fs::file_type::not_found) return found;
  fs::recursive_directory_iterator entry(folder_, failed);
  for (const fs::recursive_directory_iterator end; !failed && entry != end; entry.increment(failed)) {
    const std::string name = entry->path().lexically_relative(folder_).generic_string();
    if (!entry->is_regular_file(none) || !name.starts_with(prefix)) continue;
    if (entry->path().filename().string().starts_with(kTemporaryPrefix)) continue;
    if (const auto bytes = entry->file_size(none); !none) found.push_back({name, bytes});
  }
  if (failed)
    throw_runtime("{}: cannot be listed: {}; check the folder and your rights", folder_.string(), failed.message());
  std::ranges::sort(found, {}, &StoreEntry::name);
  return found;
}

void FileStore::remove(const std::string& name) {
  std::error_code failed;
  const fs::path path = path_of(name);
  if (!fs::is_directory(path, failed)) fs::remove(path, failed);
  if (failed && failed != std::errc::no_such_file_or_directory && failed != std::errc::not_a_directory)
    throw_runtime("{}: not removed: {}; check your rights", path.string(), failed.message());
  // A bucket has no folders, so folders that become empty are removed.
  for (fs::path parent = path.parent_path(); parent != folder_ && parent.string().size() > folder_.string().size();
       parent = parent.parent_path())
    if (rmdir(parent.c_str()) != 0) break;
}

}  // namespace wt
