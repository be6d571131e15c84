#include "trainer/data/shard_cache.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "configs/base/error.hpp"
#include "trainer/data/cache_limit.hpp"

namespace wt {
namespace {

constexpr const char* kTableName = ".shard-table";
/// As in Streaming: other processes may remove a shard between its preparation and its mapping.
constexpr int kTriesAgainstRemoval = 8;
constexpr auto kPauseWhenBusy = std::chrono::milliseconds(5);

using Shard = std::shared_ptr<const MdsShardFile>;

}  // namespace

class ShardCache::State {
 public:
  State(const DatasetSpec& spec, ShardCacheOptions options);
  ~State();

  /// The shard with a sample, and the sample's index in it.
  std::pair<Shard, std::size_t> find(std::int64_t id);
  void prefetch(std::span<const std::int64_t> ids);
  std::uint64_t usage() { return limit_ ? limit_->usage() : 0; }
  std::int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  const std::vector<std::vector<std::int64_t>>& shard_sizes() const { return sizes_; }
  DataIdentity identity() const {
    DataIdentity out;
    for (const auto& stream : streams_) out.push_back(stream->identity());
    return out;
  }

 private:
  struct Opened {
    Shard shard;
    std::uint64_t last_read = 0;  ///< value of reads_ at its last read
  };
  using Lock = std::unique_lock<std::mutex>;

  std::size_t shard_of(std::int64_t id) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, id) - ends_.begin());
  }
  std::pair<StreamFolder&, std::size_t> place_of(std::size_t shard) const {
    const auto stream = static_cast<std::size_t>(std::ranges::upper_bound(first_, shard) - first_.begin() - 1);
    return {*streams_[stream], shard - first_[stream]};
  }
  void set_limit(std::uint64_t limit);
  Shard opened(std::size_t shard);
  Shard open(std::size_t shard, bool wait);
  std::pair<Shard, std::exception_ptr> open_unlocked(Lock& lock, std::size_t shard, bool wait);
  void keep(std::size_t shard, Shard file);
  void drop_removed();
  void work();

  ShardCacheOptions options_;
  std::vector<std::unique_ptr<StreamFolder>> streams_;
  std::vector<std::size_t> first_;  ///< by stream, the global index of its first shard
  std::vector<std::vector<std::int64_t>> sizes_;
  std::vector<std::int64_t> ends_;  ///< first sample id after each shard
  std::unique_ptr<CacheLimit> limit_;
  bool makes_shards_ = false;  ///< some shards must be fetched or decompressed

  std::mutex mutex_;  ///< guards everything below
  std::condition_variable changed_;
  std::atomic<bool> stopped_ = false;
  std::unordered_map<std::size_t, Opened> open_;
  std::unordered_set<std::size_t> in_work_;  ///< a thread of this process is preparing it
  std::map<std::size_t, std::exception_ptr> failed_;
  std::vector<bool> verified_;  ///< by this process
  std::deque<std::size_t> queue_;
  std::unordered_set<std::size_t> queued_;
  std::unordered_set<std::size_t> ahead_;  ///< prepared by threads_ and not yet requested
  std::size_t most_ahead_ = 0;             ///< half of the limit, so that prefetched shards are not removed before use
  std::uint64_t reads_ = 0, removals_ = 0;
  std::vector<std::thread> threads_;
};

ShardCache::State::State(const DatasetSpec& spec, ShardCacheOptions options) : options_(std::move(options)) {
  if (options_.column.empty()) options_.column = spec.finetuning ? kTurnsColumn : kTokensColumn;
  options_.fetch.stopped = [this] { return stopped_.load(); };
  std::int64_t end = 0;
  for (const StreamSpec& stream : spec.streams) {
    streams_.push_back(std::make_unique<StreamFolder>(stream, options_.column, options_.fetch));
    first_.push_back(ends_.size());
    sizes_.emplace_back();
    makes_shards_ = makes_shards_ || streams_.back()->has_remote();
    for (const MdsShard& shard : streams_.back()->shards()) {
      makes_shards_ = makes_shards_ || shard.zip;
      sizes_.back().push_back(shard.samples);
      ends_.push_back(end += shard.samples);
    }
  }
  verified_.resize(ends_.size());
  if (spec.cache_limit) set_limit(static_cast<std::uint64_t>(*spec.cache_limit));
}

ShardCache::State::~State() {
  {
    const Lock lock(mutex_);  // otherwise a thread about to wait would miss the notification
    stopped_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ShardCache::State::set_limit(std::uint64_t limit) {
  std::uint64_t indexes = 0;
  std::vector<ShardRoom> rooms;
  std::optional<std::filesystem::path> table;
  for (const auto& stream : streams_) {
    indexes += stream->index_bytes();
    if (stream->has_remote() && !table) table = stream->folder() / kTableName;
    for (const MdsShard& shard : stream->shards()) {
      const std::uint64_t zip = shard.zip ? shard.zip->bytes : 0;
      const std::uint64_t kept = stream->keeps_zip() ? zip : 0;
      rooms.push_back(stream->has_remote() ? ShardRoom{shard.raw.bytes + zip, shard.raw.bytes + kept} : ShardRoom{});
    }
  }
  if (!table) return;  // no shard can be fetched again
  std::uint64_t largest = 1;
  for (const ShardRoom& room : rooms) largest = std::max(largest, room.most);
  most_ahead_ = std::max<std::uint64_t>(1, limit / largest / 2);
  ShardFiles files;
  files.present = [this](std::size_t shard) {
    const auto [stream, at] = place_of(shard);
    return stream.present(at);
  };
  files.being_prepared = [this](std::size_t shard) {
    const auto [stream, at] = place_of(shard);
    if (stream.prepared_elsewhere(at)) return true;
    const Lock lock(mutex_);
    return in_work_.contains(shard);
  };
  files.remove = [this](std::size_t shard) {
    const auto [stream, at] = place_of(shard);
    stream.remove(at);
  };
  limit_ = std::make_unique<CacheLimit>(*table, limit, indexes, std::move(rooms), std::move(files));
}

void ShardCache::State::drop_removed() {
  if (!limit_ || limit_->removals() == removals_) return;
  removals_ = limit_->removals();
  std::erase_if(open_, [&](const auto& each) { return !limit_->is_ready(each.first); });
  std::erase_if(ahead_, [&](std::size_t shard) { return !limit_->is_ready(shard); });
}

void ShardCache::State::keep(std::size_t shard, Shard file) {
  if (open_.size() >= options_.most_open) {
    open_.erase(std::ranges::min_element(open_, {}, [](const auto& each) { return each.second.last_read; }));
  }
  open_[shard] = {std::move(file), ++reads_};
  verified_[shard] = true;
}

/// Prepares and maps a shard that is in in_work_, without holding the mutex. Empty: another process is preparing it.
Shard ShardCache::State::open(std::size_t shard, bool wait) {
  const auto [stream, at] = place_of(shard);
  bool verified = false;
  {
    const Lock lock(mutex_);
    verified = verified_[shard];
  }
  // Reserves under the shard's lock. Otherwise another process could begin with the shard and lose its reservation.
  ShardMaking making;
  if (limit_)
    making = {[this, shard] { limit_->reserve(shard); }, [this, shard] { limit_->ready(shard); },
              [this, shard] { limit_->give_up(shard); }};
  for (int tries = 0;; ++tries) {
    StreamFolder::Prepared prepared = StreamFolder::Prepared::busy;
    try {
      prepared = stream.prepare(at, wait, making);
      if (prepared == StreamFolder::Prepared::busy) return nullptr;
      if (limit_ && !limit_->is_ready(shard)) stream.unless_being_prepared(at, making.made);
      Shard file = stream.open(at, verified || prepared == StreamFolder::Prepared::made);
      if (limit_) limit_->touch(shard);
      return file;
    } catch (const Error&) {
      const bool removed = limit_ && prepared != StreamFolder::Prepared::busy && !stream.present(at);
      if (!removed) throw;
      if (tries == kTriesAgainstRemoval)
        throw_runtime(
            "{}: {}: the shard was removed {} times before it was read, allowed is a cache_limit that holds what all "
            "processes read at once; raise cache_limit",
            stream.folder().string(), stream.shards()[at].raw.basename, tries + 1);
    }
  }
}

/// The same, with the shard in in_work_ and without the lock meanwhile; and what it threw.
std::pair<Shard, std::exception_ptr> ShardCache::State::open_unlocked(Lock& lock, std::size_t shard, bool wait) {
  std::pair<Shard, std::exception_ptr> out;
  in_work_.insert(shard);
  lock.unlock();
  try {
    out.first = open(shard, wait);
  } catch (...) {
    out.second = std::current_exception();
  }
  lock.lock();
  in_work_.erase(shard);
  return out;
}

Shard ShardCache::State::opened(std::size_t shard) {
  Lock lock(mutex_);
  drop_removed();
  ahead_.erase(shard);
  while (true) {
    if (const auto found = open_.find(shard); found != open_.end()) {
      ahead_.erase(shard);  // another thread may have opened it in the meantime
      found->second.last_read = ++reads_;
      return found->second.shard;
    }
    if (const auto failed = failed_.find(shard); failed != failed_.end()) {
      const std::exception_ptr why = failed->second;
      failed_.erase(failed);
      std::rethrow_exception(why);
    }
    if (!in_work_.contains(shard)) break;
    changed_.wait(lock);
  }
  if (queued_.erase(shard) > 0) std::erase(queue_, shard);  // fetched here, without waiting for the queue
  const auto [file, failure] = open_unlocked(lock, shard, true);
  if (file) keep(shard, file);
  changed_.notify_all();
  if (failure) std::rethrow_exception(failure);
  return file;
}

std::pair<Shard, std::size_t> ShardCache::State::find(std::int64_t id) {
  if (id < 0 || id >= size())
    throw_usage("{}: found sample {}, allowed are 0 to {}; use the sampler of this dataset",
                streams_.empty() ? std::string("dataset") : streams_.front()->folder().string(), id, size() - 1);
  const std::size_t shard = shard_of(id);
  Shard file = opened(shard);
  if (limit_) limit_->touch(shard);
  const std::int64_t begin = shard == 0 ? 0 : ends_[shard - 1];
  return {std::move(file), static_cast<std::size_t>(id - begin)};
}

void ShardCache::State::prefetch(std::span<const std::int64_t> ids) {
  if (!makes_shards_) return;
  const Lock lock(mutex_);
  drop_removed();
  std::size_t last = ends_.size();
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= size()) continue;  // padding of an order
    const std::size_t shard = shard_of(id);
    if (std::exchange(last, shard) == shard || open_.contains(shard) || in_work_.contains(shard)) continue;
    if (queued_.insert(shard).second) queue_.push_back(shard);
  }
  if (queue_.empty()) return;
  if (threads_.empty())
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
  changed_.notify_all();
}

void ShardCache::State::work() {
  Lock lock(mutex_);
  std::size_t skip = 0;  // shards at the queue's front that other processes are preparing
  while (!stopped_) {
    if (queue_.empty()) {
      changed_.wait(lock);
      continue;
    }
    drop_removed();
    if (skip >= queue_.size() || (limit_ && ahead_.size() >= most_ahead_)) {
      skip = 0;
      changed_.wait_for(lock, kPauseWhenBusy);
      continue;
    }
    const std::size_t shard = queue_[skip];
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(skip));
    queued_.erase(shard);
    if (open_.contains(shard) || in_work_.contains(shard)) continue;
    const auto [file, failure] = open_unlocked(lock, shard, false);
    if (file) {
      keep(shard, file);
      failed_.erase(shard);
      if (limit_) ahead_.insert(shard);
    }
    if (failure) failed_[shard] = failure;
    if (!file && !failure && queued_.insert(shard).second) {
      queue_.insert(queue_.begin() + static_cast<std::ptrdiff_t>(std::min(skip, queue_.size())), shard);
      ++skip;
    }
    changed_.notify_all();
  }
}

ShardCache::ShardCache(const DatasetSpec& spec, ShardCacheOptions options)
    : state_(std::make_unique<State>(spec, std::move(options))) {}
ShardCache::~ShardCache() = default;
std::int64_t ShardCache::size() const { return state_->size(); }
const std::vector<std::vector<std::int64_t>>& ShardCache::shard_sizes() const { return state_->shard_sizes(); }
DataIdentity ShardCache::identity() const { return state_->identity(); }
std::vector<std::int32_t> ShardCache::tokens(std::int64_t id) const {
  const auto [file, place] = state_->find(id);
  return file->tokens(place);
}
std::string ShardCache::payload(std::int64_t id) const {
  const auto [file, place] = state_->find(id);
  const auto bytes = file->payload(place);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
void ShardCache::prefetch(std::span<const std::int64_t> ids) const { state_->prefetch(ids); }
std::uint64_t ShardCache::usage() const { return state_->usage(); }

}  // namespace wt
