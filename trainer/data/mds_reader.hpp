// Reads one local folder of MDS shards, ours or Streaming's. It opens all shards at once, so it is for small data sets;
// runs use shard_cache.hpp.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/stream_folder.hpp"
#include "trainer/data/token_samples.hpp"

namespace wt {

class MdsReader : public TokenSamples {
 public:
  /// Compressed shards are decompressed next to their files, as in Streaming. Throws Error{usage} with the file: no or
  /// bad index.json (see read_mds_index), a shard that is missing, truncated, or differs from the index in size, sample
  /// count or offsets, and a `column` that is missing or has no tokens.
  explicit MdsReader(const std::filesystem::path& directory, const std::string& column = kTokensColumn);

  std::int64_t size() const override { return ends_.back(); }
  /// Samples of each shard, in the order of sample ids: the sampler's input.
  std::vector<std::int64_t> shard_sizes() const;
  std::vector<std::int32_t> tokens(std::int64_t index) const override;

 private:
  StreamFolder folder_;
  std::vector<std::shared_ptr<const MdsShardFile>> shards_;
  std::vector<std::int64_t> ends_;  ///< first sample id after each shard
};

}  // namespace wt
