// The samples of all streams of a data set under one numbering, stream by stream and shard by shard. Opening only reads
// the indexes. Shards are fetched, verified, decompressed and mapped when a sample is requested, or earlier by threads
// in the order of prefetch(). With a limit, the least recently read shards are removed when room is needed, and fetched
// again later; shards of streams without a remote are kept.
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
  std::string column;  ///< empty: the turns in a finetuning data set, otherwise the tokens
  FetchOptions fetch;
  int threads = 4;               ///< that fetch ahead; started when there is something to fetch
  std::size_t most_open = 4096;  ///< shards mapped at once; Linux allows 65,530 mappings per process
};

class ShardCache : public TokenSamples {
 public:
  /// Throws as StreamFolder and CacheLimit do.
  explicit ShardCache(const DatasetSpec& spec, ShardCacheOptions options = {});
  /// Waits for a running fetch.
  ~ShardCache() override;
  ShardCache(const ShardCache&) = delete;
  ShardCache& operator=(const ShardCache&) = delete;

  std::int64_t size() const override;
  /// Samples of each shard of each stream, in the order of sample ids: the input of the sample order.
  const std::vector<std::vector<std::int64_t>>& shard_sizes() const;
  /// Of the streams as they were opened.
  DataIdentity identity() const;
  std::vector<std::int32_t> tokens(std::int64_t id) const override;
  /// The column's bytes of a sample. Thread-safe, throws like tokens().
  std::string payload(std::int64_t id) const;
  /// Fetches the shards of these samples, in their order, in the background. tokens() reports errors. Repeated ids cost
  /// almost nothing; nor do any ids if every stream is a local folder of uncompressed shards.
  void prefetch(std::span<const std::int64_t> ids) const;
  /// Bytes of the limit that are in use; 0 without a limit.
  std::uint64_t usage() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace wt
