// How many bytes of shards the folders of a data set hold, over all processes of a machine that read it, and which
// shard goes when there is no room for the next: the one that nobody has read for the longest time. The state of all
// shards is 8 bytes each in a file that the processes map. A process that is killed leaves nothing that blocks: what it
// was preparing is forgotten when room is needed, and the first to come when nobody else is there looks at the folders
// anew.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "trainer/data/detail/range_lock.hpp"

namespace wt {

/// Of a shard, in bytes; both 0 where it is not counted because it cannot be fetched again.
struct ShardRoom {
  std::uint64_t most = 0;   ///< while it is prepared
  std::uint64_t ready = 0;  ///< afterwards
};

/// What CacheLimit asks of the folders: called with its lock held.
struct ShardFiles {
  std::function<bool(std::size_t)> present;
  std::function<bool(std::size_t)> in_work;  ///< some process is at it
  std::function<void(std::size_t)> remove;   ///< also what a killed process left of it
};

class CacheLimit {
 public:
  /// `fixed` bytes are always there. Throws Error{usage} naming `file` when the limit is not above these or below four
  /// times the largest shard (as Streaming), or when other processes use the file with another data set or limit;
  /// Error{runtime} when the file cannot be made.
  CacheLimit(const std::filesystem::path& file, std::uint64_t limit, std::uint64_t fixed, std::vector<ShardRoom> shards,
             ShardFiles files);
  ~CacheLimit();
  CacheLimit(const CacheLimit&) = delete;
  CacheLimit& operator=(const CacheLimit&) = delete;

  /// Room for one more shard, which the caller alone prepares; removes others. Waits while all room is taken by shards
  /// that are being prepared.
  void reserve(std::size_t shard);
  /// The shard is there: the end of reserve(), or found without it.
  void ready(std::size_t shard);
  /// It did not come to that.
  void give_up(std::size_t shard);
  /// It was read just now.
  void touch(std::size_t shard);
  bool is_ready(std::size_t shard) const;
  /// Changes when a shard has been removed.
  std::uint64_t removals() const;
  /// Bytes now, those being prepared at their most.
  std::uint64_t usage();

 private:
  struct Header;
  class Locked;
  void check() const;
  void map();
  void begin(bool alone);
  std::uint64_t count() const;
  bool make_room(std::size_t shard);
  bool remove_coldest(std::uint64_t& used);
  bool remove_abandoned(std::uint64_t& used);

  std::filesystem::path file_;
  std::uint64_t limit_, fixed_;
  std::vector<ShardRoom> shards_;
  ShardFiles files_;
  detail::RangeLock lock_;
  std::mutex mutex_;  ///< beside lock_, which does not tell threads apart
  Header* header_ = nullptr;
  std::span<std::atomic<std::uint64_t>> states_;
};

}  // namespace wt
