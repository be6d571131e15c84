// The safetensors container: u64 little-endian header length, JSON header padded to 8 bytes, byte buffer.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace wt {

/// A run of fp32 values to be written: 1-D, with where it lies in the logical tensor it is part of.
struct SafetensorsSlice {
  std::string key;
  const float* values = nullptr;
  std::int64_t count = 0;
  std::int64_t begin = 0;               ///< first element within the flattened logical tensor
  std::vector<std::int64_t> full_shape; ///< of the logical tensor
};

struct WrittenFile {
  std::int64_t bytes = 0;
  std::string xxh3;  ///< 16 hex digits over the whole file
};

/// Writes under a temporary name, fsyncs, renames. `progress(share)` is called as bytes go out. Throws Error{runtime}
/// and removes the temporary when writing fails (disk full, file-size limit).
WrittenFile write_safetensors(const std::filesystem::path& file, const std::vector<SafetensorsSlice>& slices,
                              const std::function<void(double)>& progress = {});

/// A slice found in a file.
struct StoredSlice {
  std::filesystem::path file;
  std::int64_t offset = 0;  ///< bytes from the start of the file
  std::int64_t begin = 0, count = 0;
};

/// Header of a file: slices by key. Throws Error{usage} naming the file: cut off, not safetensors, other types than F32.
std::map<std::string, StoredSlice> read_safetensors_header(const std::filesystem::path& file);
/// Reads `count` values from `first` of the slice (both within it).
void read_slice(const StoredSlice& slice, std::int64_t first, std::int64_t count, float* values);
/// Size and checksum of a file on disk, as write_safetensors reported them.
WrittenFile checksum_file(const std::filesystem::path& file);

}  // namespace wt
