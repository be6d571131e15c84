// The folder of one stream: a local data set, or the cache of a remote one. Shards are fetched on demand, verified and
// decompressed, and appear under their names atomically. Processes that share the folder lock it shard by shard; a
// killed process leaves a file with a temporary name, which the next process replaces.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/detail/range_lock.hpp"
#include "trainer/data/mds_shard_file.hpp"
#include "trainer/storage/store.hpp"

namespace wt {

using OpenStore = std::function<std::unique_ptr<Store>(const std::string& address)>;

struct FetchOptions {
  OpenStore open = open_store;
  /// Doubles with each further attempt, as in Streaming.
  double first_pause_s = 1;
  /// Checked between attempts: whether to give up.
  std::function<bool()> stopped = [] { return false; };
};

/// Callbacks while a shard is being prepared, under its lock.
struct ShardMaking {
  std::function<void()> begins = [] {};  ///< before anything is written
  std::function<void()> made = [] {};
  std::function<void()> failed = [] {};  ///< its files have been removed
};

class StreamFolder {
 public:
  /// Opens the index, after fetching it if missing. Throws Error{usage}: neither remote nor local, no or bad index
  /// (mds_index.hpp), no samples, no column of tokens. Error{runtime}: the index cannot be fetched or written.
  StreamFolder(const StreamSpec& spec, const std::string& column, FetchOptions options);

  const std::vector<MdsShard>& shards() const { return shards_; }
  /// Whether shards can be fetched again: there is a remote, and it is not this folder.
  bool has_remote() const { return store_ != nullptr; }
  /// Whether a compressed file is kept next to the shard.
  bool keeps_zip() const { return spec_.keep_zip || !has_remote(); }
  const std::filesystem::path& folder() const { return folder_; }
  std::uint64_t index_bytes() const { return index_bytes_; }

  /// Whether a shard's uncompressed file exists.
  bool present(std::size_t shard) const;
  enum class Prepared { found, made, busy };
  /// Creates the uncompressed file if it is missing. `busy`: another process is preparing it and `wait` is false. Only
  /// one thread of this process may prepare a shard at a time. Throws Error{usage} when the shard does not exist or
  /// does not match the index, Error{runtime} when it cannot be fetched (with file, remote and attempts) or written.
  Prepared prepare(std::size_t shard, bool wait, const ShardMaking& making = {});
  /// Calls `act` under the shard's lock, unless another process is preparing the shard.
  void unless_being_prepared(std::size_t shard, const std::function<void()>& act);
  /// Whether another process is preparing it.
  bool prepared_elsewhere(std::size_t shard);
  /// Maps the shard. Unless `verified` (checked or created by this process), it checks the hash that validate_hash
  /// names, by default an xxHash (0.1 s per GB). Throws as MdsShardFile.
  std::shared_ptr<const MdsShardFile> open(std::size_t shard, bool verified) const;
  /// Removes the shard's files, and leftovers of a killed process.
  void remove(std::size_t shard) const;

 private:
  void load_index(const std::string& column);
  std::filesystem::path inside(const std::string& basename) const;
  void fetch(const std::string& name, const std::filesystem::path& to,
             const std::function<void(const std::filesystem::path&)>& check) const;
  std::filesystem::path fetch_part(const MdsFile& file) const;
  void check_file(const MdsFile& file, const std::filesystem::path& at, bool any_hash) const;
  void make(std::size_t shard) const;
  detail::RangeLock& lock();

  StreamSpec spec_;
  FetchOptions options_;
  std::filesystem::path folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<detail::RangeLock> lock_;  ///< opened on demand: a local data set is only read
  std::mutex lock_mutex_;
  std::vector<MdsShard> shards_;
  std::vector<std::uint16_t> columns_;  ///< index of the token column, by shard
  std::uint64_t index_bytes_ = 0;
};

}  // namespace wt
