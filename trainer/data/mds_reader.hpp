// The samples of one local folder of MDS shards, ours or Streaming's, all of which are opened at once: for small data
// sets. shard_cache.hpp reads those of a run.
#pragma once
#include <cstddef>
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
  /// Shards that are stored compressed are decompressed beside their files, as Streaming does. Throws Error{usage}
  /// naming the file: no or bad index.json (see read_mds_index), a shard that is missing, cut off, of another size,
  /// sample count or offsets than the index says, and a `column` that is missing or holds no tokens.
  explicit MdsReader(const std::filesystem::path& directory, const std::string& column = kTokensColumn);

  std::int64_t size() const override { return ends_.back(); }
  /// Samples of each shard, in the order of sample ids: what the sampler wants.
  std::vector<std::int64_t> shard_sizes() const;
  std::vector<std::int32_t> tokens(std::int64_t index) const override;
  /// Reads everything and compares the hashes of the index. Throws Error{usage} on a mismatch and where a shard's index
  /// entry has no hash that we can compute.
  void verify_hashes() const;

 private:
  StreamFolder folder_;
  std::vector<std::shared_ptr<const MdsShardFile>> shards_;
  std::vector<std::int64_t> ends_;  ///< first sample id after each shard
};

}  // namespace wt
