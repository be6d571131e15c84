// One uncompressed shard, mapped: ranks of one machine share the page cache, and a file that is removed or replaced
// stays readable for those who have it open. Opening reads the table of offsets and nothing else.
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

/// Where the tokens of a shard's samples, or the turns of its examples, are among its columns. Throws Error{usage}
/// naming `origin` and the columns when there is no such column or it holds neither.
std::size_t token_column(const MdsShard& shard, const std::string& name, const std::string& origin);

class MdsShardFile {
 public:
  /// Throws Error{usage} naming the file: missing, cut off, of another size, sample count or offsets than the index
  /// says.
  MdsShardFile(const std::filesystem::path& file, const MdsShard& entry, std::size_t column);

  /// Token ids of the sample in this place of the shard. Thread-safe. Throws Error{usage} on damaged samples.
  std::vector<std::int32_t> tokens(std::size_t place) const;
  /// The column's bytes of that sample, as tokens() reads them.
  std::span<const std::byte> payload(std::size_t place) const;
  std::span<const std::byte> bytes() const { return data_.bytes(); }

 private:
  void check(const MdsShard& entry) const;

  std::filesystem::path file_;
  MdsColumns columns_;
  std::size_t column_;  ///< of the tokens
  detail::MappedFile data_;
};

/// A hash of the index that is quickest to compute, `wanted` if that is given; empty where there is none. Throws
/// Error{usage} naming `origin` when the one that is wanted is not there.
std::string quickest_hash(const MdsFile& entry, const std::string& wanted, const std::string& origin);
/// Throws Error{usage} naming `origin` unless the bytes have this hash of the index.
void check_hash(const MdsFile& entry, const std::string& name, std::span<const std::byte> bytes,
                const std::string& origin);

}  // namespace wt
