// Reads token samples from a directory of uncompressed MDS shards, ours or Streaming's. Shards are mapped, so that
// ranks of one machine share the page cache; opening reads every shard's table of offsets and nothing else.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/mds_shard_file.hpp"

namespace wt {

class MdsReader {
 public:
  /// Throws Error{usage} naming the file: no or bad index.json (see read_mds_index), a shard that is missing,
  /// compressed only, cut off, of another size, sample count or offsets than the index says, and a `column` that is
  /// missing or holds no tokens.
  explicit MdsReader(const std::filesystem::path& directory, const std::string& column = kTokensColumn);

  std::int64_t size() const { return size_; }
  /// Samples of each shard, in the order of sample ids: what the sampler wants.
  std::vector<std::int64_t> shard_sizes() const;
  /// Token ids of sample `index` (0..size()-1). Thread-safe. Throws Error{usage} on other indices and damaged samples.
  std::vector<std::int32_t> tokens(std::int64_t index) const;
  /// Reads everything and compares the hashes of the index. Throws Error{usage} on a mismatch and where a shard's index
  /// entry has no hash that we can compute.
  void verify_hashes() const;

 private:
  struct OpenShard {
    MdsShard entry;
    std::filesystem::path file;
    MdsShardFile data;
  };

  std::filesystem::path directory_;
  std::vector<OpenShard> shards_;
  std::vector<std::int64_t> ends_;  ///< first sample id after each shard
  std::int64_t size_ = 0;
};

}  // namespace wt
