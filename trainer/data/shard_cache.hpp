// The samples of all streams of a data set under one numbering: those of the first stream come first, shard by shard.
// Opening reads the indexes and nothing else. Shards are fetched, verified, decompressed and mapped when a sample is
// asked for, or ahead of that by threads in the order of prefetch(). With a limit, shards that have not been read for
// long go when room is needed, and are fetched again; shards of streams without a remote stay.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/stream_folder.hpp"
#include "trainer/data/token_samples.hpp"

namespace wt {

struct ShardCacheOptions {
  std::string column;  ///< empty: that of the turns in a finetuning data set, else of the tokens
  FetchOptions fetch;
  int threads = 4;               ///< that fetch ahead; made when there is something to fetch
  std::size_t most_open = 4096;  ///< shards mapped at once; Linux allows 65,530 mappings a process
};

class ShardCache : public TokenSamples {
 public:
  /// Throws as StreamFolder and CacheLimit do.
  explicit ShardCache(const DatasetSpec& spec, ShardCacheOptions options = {});
  /// Lets a fetch that is under way come to its end.
  ~ShardCache() override;
  ShardCache(const ShardCache&) = delete;
  ShardCache& operator=(const ShardCache&) = delete;

  std::int64_t size() const override;
  /// Samples of each shard of each stream, in the order of sample ids: what the order of samples is drawn from.
  const std::vector<std::vector<std::int64_t>>& shard_sizes() const;
  /// Of the streams as they were opened.
  DataIdentity identity() const;
  std::vector<std::int32_t> tokens(std::int64_t id) const override;
  /// The column's bytes of that sample, as tokens() reads them; thread-safe, and throws as it does.
  std::string payload(std::int64_t id) const;
  /// Fetches the shards of these samples in their order, in the background. What fails is told by tokens(). Ids that
  /// were given before cost next to nothing; so do all where every stream is a local folder of uncompressed shards.
  void prefetch(std::span<const std::int64_t> ids) const;
  /// Bytes of the limit that are in use; 0 without a limit.
  std::uint64_t usage() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace wt
