// The safetensors container: u64 little-endian header length, JSON header padded to 8 bytes, byte buffer. A file may
// hold parts of logical tensors: then its metadata says where each begins, as PyTorch's HuggingFaceStorageReader wants
// it (DCP_SHARDING_INFO). Every tensor has an XXH3 checksum in the metadata, so that damage is found by tensor name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace wt {

/// Bytes a value of a safetensors type ("F32", "BF16", ...) takes; 0 for a type that the format does not have.
std::int64_t safetensors_type_bytes(const std::string& dtype);

/// Values of a tensor of this shape; of dims at its end: of one place in the dims before them.
std::int64_t elements_of(std::span<const std::int64_t> shape);

/// A tensor to be written, values in C order.
struct OutgoingTensor {
  std::string key;
  std::string dtype = "F32";
  std::vector<std::int64_t> shape;
  const void* values = nullptr;
  std::vector<std::int64_t> offsets =
      {};  ///< where a part begins in its logical tensor; empty = whole tensors in this file
  std::int64_t bytes() const;
};

struct WrittenFile {
  std::int64_t bytes = 0;
  std::string header_xxh3;  ///< 16 hex digits over length and header, which hold the checksums of the tensors
};

/// Writes under a temporary name, fsyncs, renames. `progress(bytes so far)` is called as they go out; what it throws
/// ends the writing. Throws Error{runtime} and removes the temporary when writing fails (disk full, file-size limit).
WrittenFile write_safetensors(const std::filesystem::path& file, const std::vector<OutgoingTensor>& tensors,
                              const std::function<void(std::int64_t)>& progress = {});

/// A tensor, or part of one, found in a file.
struct StoredTensor {
  std::filesystem::path file;
  std::int64_t position = 0;  ///< of its first byte in the file
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> offsets;  ///< in the logical tensor; zeros where the file says nothing
  std::string xxh3;                   ///< "" where the file says nothing
  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * safetensors_type_bytes(dtype); }
};

struct StoredFile {
  std::map<std::string, StoredTensor> tensors;  ///< by key
  std::int64_t bytes = 0;
  std::string header_xxh3;
};

/// Reads the header alone. Throws Error{usage} naming the file: cut off, not safetensors, unknown types, tensors whose
/// shape and bytes disagree or that lie outside the file.
StoredFile read_safetensors(const std::filesystem::path& file);
/// Reads `count` values from `first` of the tensor on (both within it) into memory of its type.
void read_values(const StoredTensor& tensor, std::int64_t first, std::int64_t count, void* values);
/// The system forgets what it keeps of the file in memory, so that the next read is of the storage, as far as the file
/// system tells the two apart.
void drop_cached(const std::filesystem::path& file);
/// Empty when the file is the one that was written, byte for byte; else what is wrong with it, by tensor name.
std::string damage_of(const std::filesystem::path& file, const WrittenFile& written);

}  // namespace wt
