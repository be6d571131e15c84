#include "trainer/safetensors/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "configs/base/descriptor.hpp"
#include "configs/base/error.hpp"
#include "configs/base/file_write.hpp"
#include "configs/base/text.hpp"

namespace wt {
namespace {

using nlohmann::json;

constexpr std::size_t kChunk = 1 << 20;
constexpr std::int64_t kMaxHeader = 100'000'000;  // the format's own limit

constexpr const char* kChecksums = "XXH3_64";           // our metadata key
constexpr const char* kSharding = "DCP_SHARDING_INFO";  // PyTorch's

std::string hex(XXH64_hash_t hash) { return fmt::format("{:016x}", hash); }

class File {
 public:
  File(const std::filesystem::path& path, int flags) : path_(path), file_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (!file_.is_open() && flags == O_RDONLY)
      throw_usage("{}: could not be read: {}; check the path", path_.string(), std::strerror(errno));
    if (!file_.is_open()) fail("opened");
  }
  void write_all(const char* data, std::size_t n) {
    if (wt::write_all(file_.get(), {data, n}) != 0) fail("written");
  }
  void read_all(char* data, std::size_t n, std::int64_t offset) {
    while (n > 0) {
      const ssize_t done = pread(file_.get(), data, n, offset);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) throw_usage("{}: cut off at byte {}; take another checkpoint", path_.string(), offset);
      data += done, n -= static_cast<std::size_t>(done), offset += done;
    }
  }
  void sync() {
    if (fsync(file_.get()) != 0) fail("synced");
  }
  void drop_cached() { posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED); }
  std::int64_t size() const {
    struct stat s {};
    return fstat(file_.get(), &s) == 0 ? s.st_size : -1;
  }
  [[noreturn]] void fail(const char* what) const {
    throw_runtime("{}: could not be {}: {}; free space or raise the limit", path_.string(), what, std::strerror(errno));
  }

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// Header length and padded JSON.
std::string header_of(const std::vector<OutgoingTensor>& tensors) {
  json header = json::object(), parts = json::object(), checksums = json::object();
  std::int64_t offset = 0;
  for (const OutgoingTensor& t : tensors) {
    if (header.contains(t.key)) throw_runtime("{}: twice in one safetensors file; write its parts to several", t.key);
    header[t.key] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {offset, offset + t.bytes()}}};
    parts[t.key] = {{"saved_offsets", t.offsets.empty() ? std::vector<std::int64_t>(t.shape.size(), 0) : t.offsets}};
    checksums[t.key] = hex(XXH3_64bits(t.values, static_cast<std::size_t>(t.bytes())));
    offset += t.bytes();
  }
  json metadata = {{"format", "pt"}, {kChecksums, checksums.dump()}};
  const bool sharded = std::ranges::any_of(tensors, [](const OutgoingTensor& t) { return !t.offsets.empty(); });
  if (sharded) metadata["DCP_VERSION"] = "1.0", metadata[kSharding] = parts.dump();
  header["__metadata__"] = std::move(metadata);
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

/// Header length and JSON, as in the file.
std::string read_header(File& in, const std::filesystem::path& file) {
  std::uint64_t length = 0;
  in.read_all(reinterpret_cast<char*>(&length), 8, 0);
  if (static_cast<std::int64_t>(length) < 0 || static_cast<std::int64_t>(length) > std::min(kMaxHeader, in.size() - 8))
    throw_usage("{}: header of {} bytes does not fit the file; not safetensors or cut off", file.string(), length);
  std::string header(8 + length, '\0');
  in.read_all(header.data(), header.size(), 0);
  return header;
}

/// A JSON text inside the metadata; an empty object where it is missing.
json inner(const json& header, const char* key) {
  if (!header.contains("__metadata__") || !header["__metadata__"].contains(key)) return json::object();
  return json::parse(header["__metadata__"][key].get<std::string>());
}

/// nlohmann::json would silently convert 2.5 to 2, and 1e30 to any number.
std::vector<std::int64_t> whole_numbers(const json& list, const std::filesystem::path& file) {
  std::vector<std::int64_t> out;
  for (const json& value : list.get_ref<const json::array_t&>()) {
    if (!value.is_number_integer())
      throw_usage("{}: the header is not safetensors': found {}, allowed are whole numbers", file.string(),
                  shortened(value.dump()));
    out.push_back(value.get<std::int64_t>());
  }
  return out;
}

}  // namespace

std::int64_t safetensors_type_bytes(const std::string& dtype) {
  static const std::map<std::string, std::int64_t> bytes{
      {"F64", 8}, {"I64", 8}, {"U64", 8}, {"F32", 4}, {"I32", 4},     {"U32", 4},     {"BF16", 2}, {"F16", 2},
      {"I16", 2}, {"U16", 2}, {"I8", 1},  {"U8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"BOOL", 1}};
  const auto it = bytes.find(dtype);
  return it == bytes.end() ? 0 : it->second;
}

std::int64_t elements_of(std::span<const std::int64_t> shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 59;  // times 8 bytes fits 63 bits, and exceeds any storage
  std::int64_t all = 1;
  for (const std::int64_t n : shape)
    if (__builtin_mul_overflow(all, n, &all) || all > kMost) all = kMost;
  return all;
}

std::int64_t OutgoingTensor::bytes() const { return elements_of(shape) * safetensors_type_bytes(dtype); }
std::int64_t StoredTensor::elements() const { return elements_of(shape); }

WrittenFile write_safetensors(const std::filesystem::path& file, const std::vector<OutgoingTensor>& tensors,
                              const std::function<void(std::int64_t)>& progress) {
  const std::filesystem::path temporary = file.string() + ".tmp";
  const std::string header = header_of(tensors);
  std::int64_t done = 0;
  try {
    File out(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    const auto put = [&](const void* bytes, std::size_t n) {
      const char* data = static_cast<const char*>(bytes);
      for (std::size_t at = 0; at < n; at += kChunk) {
        const std::size_t part = std::min(kChunk, n - at);
        out.write_all(data + at, part);
        done += static_cast<std::int64_t>(part);
        if (progress) progress(done);
      }
    };
    put(header.data(), header.size());
    for (const OutgoingTensor& t : tensors) put(t.values, static_cast<std::size_t>(t.bytes()));
    out.sync();
    std::filesystem::rename(temporary, file);
  } catch (...) {
    std::error_code none;
    std::filesystem::remove(temporary, none);
    throw;
  }
  return {done, hex(XXH3_64bits(header.data(), header.size()))};
}

StoredFile read_safetensors(const std::filesystem::path& file) {
  File in(file, O_RDONLY);
  const std::string text = read_header(in, file);
  StoredFile out;
  out.bytes = in.size();
  out.header_xxh3 = hex(XXH3_64bits(text.data(), text.size()));
  try {
    const json header = json::parse(text.substr(8));
    const json parts = inner(header, kSharding), checksums = inner(header, kChecksums);
    for (const auto& [key, entry] : header.items()) {
      if (key == "__metadata__") continue;
      const std::vector<std::int64_t> ends = whole_numbers(entry.at("data_offsets"), file);
      if (ends.size() != 2) throw_usage("{}: {}: found {} data_offsets, allowed 2", file.string(), key, ends.size());
      StoredTensor t{file, 0, entry.at("dtype"), whole_numbers(entry.at("shape"), file), {}, checksums.value(key, "")};
      const std::int64_t begin = ends[0], end = ends[1];
      if (begin < 0 || end < begin)
        throw_usage("{}: {}: bytes {}..{} disagree; the file is damaged", file.string(), key, begin, end);
      if (end > out.bytes)
        throw_usage("{}: {}: bytes {}..{} lie outside the file; it is cut off", file.string(), key, begin, end);
      t.position = static_cast<std::int64_t>(text.size()) + begin;
      t.offsets.assign(t.shape.size(), 0);
      if (parts.contains(key)) t.offsets = whole_numbers(parts[key].at("saved_offsets"), file);
      if (safetensors_type_bytes(t.dtype) == 0)
        throw_usage("{}: {}: found type {}, which safetensors does not have", file.string(), key, t.dtype);
      if (std::ranges::any_of(t.shape, [](std::int64_t n) { return n < 0; }) || end - begin != t.bytes() ||
          t.offsets.size() != t.shape.size())
        throw_usage("{}: {}: shape {}, offsets {} and bytes {}..{} disagree; the file is damaged", file.string(), key,
                    entry.at("shape").dump(), json(t.offsets).dump(), begin, end);
      if (t.position + t.bytes() > in.size())
        throw_usage("{}: {}: bytes {}..{} lie outside the file; it is cut off", file.string(), key, begin, end);
      out.tensors[key] = std::move(t);
    }
  } catch (const json::exception& e) {
    throw_usage("{}: the header is not safetensors': {}", file.string(), e.what());
  }
  return out;
}

void read_values(const StoredTensor& tensor, std::int64_t first, std::int64_t count, void* values) {
  File in(tensor.file, O_RDONLY);
  const std::int64_t width = safetensors_type_bytes(tensor.dtype);
  in.read_all(static_cast<char*>(values), static_cast<std::size_t>(width * count), tensor.position + width * first);
}

void drop_cached(const std::filesystem::path& file) { File(file, O_RDONLY).drop_cached(); }

std::string damage_of(const std::filesystem::path& file, const WrittenFile& written) {
  const std::string name = file.filename().string();
  try {
    if (!std::filesystem::exists(file)) return name + " is missing";
    File in(file, O_RDONLY);
    if (in.size() != written.bytes)
      return fmt::format("{} has another size: {} bytes of {}", name, in.size(), written.bytes);
    const std::string header = read_header(in, file);
    if (hex(XXH3_64bits(header.data(), header.size())) != written.header_xxh3)
      return name + ": the header has another checksum";
    std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> hash(XXH3_createState(), XXH3_freeState);
    std::vector<char> buffer(kChunk);
    for (const auto& [key, tensor] : read_safetensors(file).tensors) {
      XXH3_64bits_reset(hash.get());
      for (std::int64_t at = 0; at < tensor.bytes(); at += static_cast<std::int64_t>(kChunk)) {
        const std::size_t part = std::min(kChunk, static_cast<std::size_t>(tensor.bytes() - at));
        in.read_all(buffer.data(), part, tensor.position + at);
        XXH3_64bits_update(hash.get(), buffer.data(), part);
      }
      if (hex(XXH3_64bits_digest(hash.get())) != tensor.xxh3)
        return fmt::format("{}: tensor {} has another checksum", name, key);
    }
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace wt
