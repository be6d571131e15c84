// The folder of one stream: a local data set, or the cache of a remote one. Shards come from the remote when they are
// needed, are verified and decompressed, and appear under their names whole or not at all. Processes that share the
// folder take turns shard by shard; one that is killed leaves a file with another name, which the next one replaces.
// All shards are of the index that the folder was opened with: a data set that is replaced meanwhile is refused.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/files/dataset.hpp"
#include "trainer/data/data_identity.hpp"
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
  /// Of the index that was opened, and of up to 1 MiB of local shards where it states no hashes.
  StreamIdentity identity() const;

  /// Whether a shard's uncompressed file exists.
  bool present(std::size_t shard) const;
  enum class Prepared { found, made, busy };
  /// Makes the uncompressed file where it is missing. `busy`: another process is at it and `wait` is false. Only one
  /// thread of this process may prepare a shard at a time. Throws Error{usage} when the shard is nowhere or not what
  /// the index says, and when the remote has another index by now; Error{runtime} when it cannot be fetched (naming
  /// file, remote and attempts) or written.
  Prepared prepare(std::size_t shard, bool wait, const ShardMaking& making = {});
  /// Calls it unless another process is at the shard, and none can begin meanwhile.
  void unless_being_prepared(std::size_t shard, const std::function<void()>& act);
  /// Whether a process but this is preparing it.
  bool prepared_elsewhere(std::size_t shard);
  /// Maps it; checks its hash unless this process has done so or made it: the one that validate_hash names, else an
  /// xxHash (0.1 s a GB). Throws as MdsShardFile, and Error{usage} where a local data set has another index by now.
  std::shared_ptr<const MdsShardFile> open(std::size_t shard, bool verified) const;
  /// Removes the shard's files, and leftovers of a killed process.
  void remove(std::size_t shard) const;

 private:
  struct FileId {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t changed_ns = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
  };
  /// None: it is not there.
  static std::optional<FileId> file_id(const std::filesystem::path& file);
  void load_index(const std::string& column);
  void check_index(std::string_view text, const std::string& origin, bool failed) const;
  void check_local_index() const;
  void check_remote_index(std::uint64_t most_bytes, bool failed) const;
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
  std::string index_hash_;
  std::optional<FileId> index_id_;
};

}  // namespace wt
