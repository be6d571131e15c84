#include "trainer/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "configs/spec/error.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr std::size_t kChunk = 1 << 20;
constexpr std::int64_t kMaxHeader = 100'000'000;  // the format's own limit

struct HashDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};
using Hash = std::unique_ptr<XXH3_state_t, HashDeleter>;

Hash new_hash() {
  Hash hash(XXH3_createState());
  XXH3_64bits_reset(hash.get());
  return hash;
}
std::string hex(const Hash& hash) { return fmt::format("{:016x}", XXH3_64bits_digest(hash.get())); }

class File {
 public:
  File(const std::filesystem::path& path, int flags) : path_(path), fd_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail("opened");
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  void write_all(const char* data, std::size_t n) {
    while (n > 0) {
      const ssize_t done = ::write(fd_, data, n);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail("written");
      data += done, n -= static_cast<std::size_t>(done);
    }
  }
  void read_all(char* data, std::size_t n, std::int64_t offset) {
    while (n > 0) {
      const ssize_t done = pread(fd_, data, n, offset);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) throw_error(Code::usage, "{}: cut off at byte {}; take another checkpoint", path_.string(), offset);
      data += done, n -= static_cast<std::size_t>(done), offset += done;
    }
  }
  void sync() {
    if (fsync(fd_) != 0) fail("synced");
  }
  std::int64_t size() const {
    struct stat s {};
    return fstat(fd_, &s) == 0 ? s.st_size : -1;
  }
  [[noreturn]] void fail(const char* what) const {
    throw_error(Code::runtime, "{}: could not be {}: {}; free space or raise the limit", path_.string(), what, std::strerror(errno));
  }

 private:
  std::filesystem::path path_;
  int fd_;
};

std::string header_of(const std::vector<SafetensorsSlice>& slices) {
  json header = json::object(), parts = json::object();
  std::int64_t offset = 0;
  for (const auto& s : slices) {
    header[s.key] = {{"dtype", "F32"}, {"shape", {s.count}}, {"data_offsets", {offset, offset + 4 * s.count}}};
    parts[s.key] = {{"begin", s.begin}, {"shape", s.full_shape}};
    offset += 4 * s.count;
  }
  header["__metadata__"] = {{"format", "pt"}, {"windtunnel.slices", parts.dump()}};
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& file, const std::vector<SafetensorsSlice>& slices,
                              const std::function<void(double)>& progress) {
  const std::filesystem::path temporary = file.string() + ".tmp";
  const std::string header = header_of(slices);
  std::int64_t total = 8 + static_cast<std::int64_t>(header.size()), done = 0;
  for (const auto& s : slices) total += 4 * s.count;
  const Hash hash = new_hash();
  try {
    File out(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    const auto put = [&](const void* bytes, std::size_t n) {
      const char* data = static_cast<const char*>(bytes);
      for (std::size_t at = 0; at < n; at += kChunk) {
        const std::size_t part = std::min(kChunk, n - at);
        out.write_all(data + at, part);
        XXH3_64bits_update(hash.get(), data + at, part);
        done += static_cast<std::int64_t>(part);
        if (progress) progress(static_cast<double>(done) / static_cast<double>(total));
      }
    };
    const std::uint64_t length = header.size();
    put(&length, 8);
    put(header.data(), header.size());
    for (const auto& s : slices) put(s.values, static_cast<std::size_t>(4 * s.count));
    out.sync();
  } catch (...) {
    std::error_code none;
    std::filesystem::remove(temporary, none);
    throw;
  }
  std::filesystem::rename(temporary, file);
  return {total, hex(hash)};
}

std::map<std::string, StoredSlice> read_safetensors_header(const std::filesystem::path& file) {
  File in(file, O_RDONLY);
  std::uint64_t length = 0;
  in.read_all(reinterpret_cast<char*>(&length), 8, 0);
  if (static_cast<std::int64_t>(length) > std::min(kMaxHeader, in.size() - 8))
    throw_error(Code::usage, "{}: header of {} bytes does not fit the file; not safetensors or cut off", file.string(), length);
  std::string text(length, '\0');
  in.read_all(text.data(), length, 8);
  const json header = json::parse(text, nullptr, false);
  std::map<std::string, StoredSlice> out;
  try {
    const json parts = json::parse(header.at("__metadata__").at("windtunnel.slices").get<std::string>());
    for (const auto& [key, entry] : header.items()) {
      if (key == "__metadata__") continue;
      if (entry.at("dtype") != "F32") throw_error(Code::usage, "{}: {}: found {}, needs F32", file.string(), key, entry.at("dtype").dump());
      const std::int64_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
      const std::int64_t at = 8 + static_cast<std::int64_t>(length) + begin;
      if (begin < 0 || end < begin || at + end - begin > in.size())
        throw_error(Code::usage, "{}: {}: bytes {}..{} lie outside the file; it is cut off", file.string(), key, begin, end);
      out[key] = {file, at, parts.at(key).at("begin").get<std::int64_t>(), (end - begin) / 4};
    }
  } catch (const json::exception& e) {
    throw_error(Code::usage, "{}: header is not one of our checkpoints: {}", file.string(), e.what());
  }
  return out;
}

void read_slice(const StoredSlice& slice, std::int64_t first, std::int64_t count, float* values) {
  File in(slice.file, O_RDONLY);
  in.read_all(reinterpret_cast<char*>(values), static_cast<std::size_t>(4 * count), slice.offset + 4 * first);
}

WrittenFile checksum_file(const std::filesystem::path& file) {
  File in(file, O_RDONLY);
  const Hash hash = new_hash();
  std::vector<char> buffer(kChunk);
  const std::int64_t size = in.size();
  for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(kChunk)) {
    const std::size_t part = std::min(kChunk, static_cast<std::size_t>(size - at));
    in.read_all(buffer.data(), part, at);
    XXH3_64bits_update(hash.get(), buffer.data(), part);
  }
  return {size, hex(hash)};
}

}  // namespace wt
