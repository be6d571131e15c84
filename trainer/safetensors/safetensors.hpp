// The safetensors container: u64 little-endian header length, JSON header padded to 8 bytes, byte buffer. A file may
// contain parts of logical tensors: then its metadata says where each begins, in the format of PyTorch's
// HuggingFaceStorageReader (DCP_SHARDING_INFO). The metadata has an XXH3 checksum of every tensor, so that damage is
// reported by tensor name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace wt {

/// Bytes of a value of a safetensors type ("F32", "BF16", ...); 0 for an unknown type.
std::int64_t safetensors_type_bytes(const std::string& dtype);

/// Number of values of a tensor with this shape.
std::int64_t elements_of(std::span<const std::int64_t> shape);

/// A tensor to be written, values in C order.
struct OutgoingTensor {
  std::string key;
  std::string dtype = "F32";
  std::vector<std::int64_t> shape;
  const void* values = nullptr;
  std::vector<std::int64_t> offsets =
      {};  ///< begin of a part in its logical tensor; empty = the file has whole tensors
  std::int64_t bytes() const;
};

struct WrittenFile {
  std::int64_t bytes = 0;
  std::string header_xxh3;  ///< 16 hex digits, over length and header, which contain the tensors' checksums
};

/// Writes atomically with fsync. `progress(bytes so far)` is called during writing; an exception from it ends the
/// writing. Throws Error{runtime} and removes the temporary file when writing fails (disk full, file-size limit).
WrittenFile write_safetensors(const std::filesystem::path& file, const std::vector<OutgoingTensor>& tensors,
                              const std::function<void(std::int64_t)>& progress = {});

/// A tensor, or a part of one, in a file.
struct StoredTensor {
  std::filesystem::path file;
  std::int64_t position = 0;  ///< of its first byte in the file
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> offsets;  ///< in the logical tensor; zeros by default
  std::string xxh3;                   ///< "" if the file has no checksum
  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * safetensors_type_bytes(dtype); }
};

struct StoredFile {
  std::map<std::string, StoredTensor> tensors;  ///< by key
  std::int64_t bytes = 0;
  std::string header_xxh3;
};

/// Reads only the header. Throws Error{usage} with the file: truncated, not safetensors, unknown types, tensors whose
/// shape and bytes disagree or that are outside the file.
StoredFile read_safetensors(const std::filesystem::path& file);
/// Reads `count` values from value `first` on (inside the tensor) into memory of its type.
void read_values(const StoredTensor& tensor, std::int64_t first, std::int64_t count, void* values);
/// Drops the file's pages from the cache, so that the next read is from storage, if the file system distinguishes the
/// two.
void drop_cached(const std::filesystem::path& file);
/// Empty when the file equals the written one, byte for byte; otherwise the damage, by tensor name.
std::string damage_of(const std::filesystem::path& file, const WrittenFile& written);

}  // namespace wt
