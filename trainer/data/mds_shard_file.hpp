// One uncompressed shard, memory-mapped: ranks of a machine share the page cache, and a removed or replaced file stays
// readable while it is open. Opening only reads the table of offsets.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/detail/file_io.hpp"
#include "trainer/data/mds_index.hpp"

namespace wt {

/// Index of the column with the samples' tokens, or the examples' turns. Throws Error{usage} with `origin` and the
/// columns when there is no such column or it has neither.
std::size_t token_column(const MdsShard& shard, const std::string& name, const std::string& origin);

class MdsShardFile {
 public:
  /// Throws Error{usage} with the file: missing, truncated, or different from the index in size, sample count or
  /// offsets.
  MdsShardFile(const std::filesystem::path& file, const MdsShard& entry, std::size_t column);

  /// Token ids of the sample with this index in the shard. Thread-safe. Throws Error{usage} for damaged samples.
  std::vector<std::int32_t> tokens(std::size_t place) const;
  /// The column's bytes of that sample.
  std::span<const std::byte> payload(std::size_t place) const;
  std::span<const std::byte> bytes() const { return data_.bytes(); }

 private:
  void check(const MdsShard& entry) const;

  std::filesystem::path file_;
  MdsColumns columns_;
  std::size_t column_;  ///< index of the token column
  detail::MappedFile data_;
};

/// Of the hashes in the index, the name of the one that is quickest to compute, or `wanted` if that is not empty. Empty
/// where there are none. Throws Error{usage} with `origin` when `wanted` is not in the index.
std::string quickest_hash(const MdsFile& entry, const std::string& wanted, const std::string& origin);
/// Throws Error{usage} naming `origin` unless the bytes have this hash of the index.
void check_hash(const MdsFile& entry, const std::string& name, std::span<const std::byte> bytes,
                const std::string& origin);

}  // namespace wt
