// Limits the bytes of cached shards in the folders of a data set, over all processes of a machine that read it. When
// there is no room for the next shard, the least recently read one is removed. The state is 8 bytes per shard in a file
// that the processes map. A killed process blocks nobody: shards that it was preparing are released when room is
// needed, and the first process to open an unused table checks the folders again.
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

/// Bytes of a shard. Both are 0 where it does not count, because it cannot be fetched again.
struct ShardRoom {
  std::uint64_t most = 0;   ///< during preparation
  std::uint64_t ready = 0;  ///< afterwards
};

/// Operations on the folders, called with CacheLimit's lock held.
struct ShardFiles {
  std::function<bool(std::size_t)> present;
  std::function<bool(std::size_t)> being_prepared;  ///< a process is preparing it
  std::function<void(std::size_t)> remove;          ///< including leftovers of a killed process
};

class CacheLimit {
 public:
  /// `fixed` bytes are always in use. Throws Error{usage} with `file` when the limit is not above these or below four
  /// times the largest shard (as in Streaming), or when other processes use the file with another data set or limit;
  /// Error{runtime} when the file cannot be created.
  CacheLimit(const std::filesystem::path& file, std::uint64_t limit, std::uint64_t fixed, std::vector<ShardRoom> shards,
             ShardFiles files);
  ~CacheLimit();

  /// Reserves room for a shard, which only the caller prepares, and removes others. Waits while all room belongs to
  /// shards in preparation.
  void reserve(std::size_t shard);
  /// The shard is present: prepared after reserve(), or found.
  void ready(std::size_t shard);
  /// Its preparation failed.
  void give_up(std::size_t shard);
  /// Records that it is being read.
  void touch(std::size_t shard);
  bool is_ready(std::size_t shard) const;
  /// A counter that changes when a shard has been removed.
  std::uint64_t removals() const;
  /// Bytes in use; shards in preparation count with `most`.
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
  std::mutex mutex_;  ///< in addition to lock_, which does not exclude threads of this process
  Header* header_ = nullptr;
  std::span<std::atomic<std::uint64_t>> states_;
};

}  // namespace wt
