#include "trainer/data/cache_limit.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "configs/base/hash.hpp"

namespace wt {
namespace {

// A state is the time of last use in nanoseconds, by the clock that all processes of a machine share, shifted by 2
// bits.
constexpr std::uint64_t kAway = 0, kInWork = 1, kReady = 2, kKind = 3;
constexpr std::uint64_t kMagic = 0x31656c6261547457;  // "WtTable1"
// Places of the lock.
constexpr std::uint64_t kTable = 0, kUsers = 1;

std::uint64_t ready_now() { return (static_cast<std::uint64_t>(steady_s() * 1e9) << 2) | kReady; }

}  // namespace

struct CacheLimit::Header {
  std::uint64_t magic, shards, identity;
  std::atomic<std::uint64_t> removals;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share these");

/// Exclusive access to the table, against threads and processes.
class CacheLimit::Locked {
 public:
  explicit Locked(CacheLimit& owner) : own_(owner.mutex_), lock_(owner.lock_) { lock_.lock(kTable); }
  ~Locked() { lock_.unlock(kTable); }

 private:
  std::lock_guard<std::mutex> own_;
  detail::RangeLock& lock_;
};

CacheLimit::CacheLimit(const std::filesystem::path& file, std::uint64_t limit, std::uint64_t fixed,
                       std::vector<ShardRoom> shards, ShardFiles files)
    : file_(file), limit_(limit), fixed_(fixed), shards_(std::move(shards)), files_(std::move(files)), lock_(file) {
  check();
  const Locked locked(*this);
  const bool alone = lock_.try_lock(kUsers);
  map();
  begin(alone);
  lock_.lock_shared(kUsers);  // replaces the exclusive lock; the table's lock keeps others out in between
}

CacheLimit::~CacheLimit() {
  if (header_ != nullptr) ::munmap(header_, sizeof(Header) + states_.size_bytes());
}

void CacheLimit::check() const {
  std::uint64_t largest = 0;
  for (const ShardRoom& shard : shards_) largest = std::max(largest, shard.most);
  const std::uint64_t least = std::max(4 * largest, fixed_ + largest);
  if (limit_ > fixed_ && limit_ >= least) return;
  throw_usage(
      "{}: cache_limit: found {} bytes, allowed are more than the indexes ({} bytes) and at least four times the "
      "largest shard with its compressed file ({} bytes); set at least {}",
      file_.parent_path().string(), limit_, fixed_, largest, std::max(least, fixed_ + 1));
}

void CacheLimit::map() {
  const std::size_t bytes = sizeof(Header) + 8 * shards_.size();
  struct stat status {};
  const bool failed =
      ::fstat(lock_.descriptor(), &status) != 0 ||
      (std::cmp_less(status.st_size, bytes) && ::ftruncate(lock_.descriptor(), static_cast<off_t>(bytes)) != 0);
  void* const mapped =
      failed ? MAP_FAILED : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, lock_.descriptor(), 0);
  if (mapped == MAP_FAILED)
    throw_runtime("{}: mapping {} bytes failed: {}; allowed is a folder with room on a disk of this machine",
                  file_.string(), bytes, std::generic_category().message(errno));
  header_ = static_cast<Header*>(mapped);
  states_ = {reinterpret_cast<std::atomic<std::uint64_t>*>(header_ + 1), shards_.size()};
}

void CacheLimit::begin(bool alone) {
  const std::uint64_t identity = hash_of(std::span<const ShardRoom>(shards_), limit_);
  if (!alone) {
    if (header_->magic == kMagic && header_->shards == shards_.size() && header_->identity == identity) return;
    throw_usage(
        "{}: found that another process uses this folder with another data set or cache_limit, or another data set of "
        "this run does, allowed is one of each at a time; give one of them a folder of its own as `local`, or wait "
        "until the other process has ended",
        file_.string());
  }
  header_->magic = kMagic;
  header_->shards = shards_.size();
  header_->identity = identity;
  for (std::size_t i = 0; i < shards_.size(); ++i)
    states_[i] = shards_[i].most > 0 && files_.present(i) ? kReady : kAway;
}

std::uint64_t CacheLimit::count() const {
  std::uint64_t used = fixed_;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::uint64_t kind = states_[i].load(std::memory_order_relaxed) & kKind;
    used += kind == kReady ? shards_[i].ready : kind == kInWork ? shards_[i].most : 0;
  }
  return used;
}

std::uint64_t CacheLimit::usage() {
  const Locked locked(*this);
  return count();
}

bool CacheLimit::remove_coldest(std::uint64_t& used) {
  std::optional<std::size_t> coldest;
  std::uint64_t since = 0;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    const std::uint64_t state = states_[i].load(std::memory_order_relaxed);
    if ((state & kKind) == kReady && (!coldest || state < since)) coldest = i, since = state;
  }
  if (!coldest) return false;
  states_[*coldest] = kAway;
  ++header_->removals;
  files_.remove(*coldest);
  used -= shards_[*coldest].ready;
  return true;
}

bool CacheLimit::remove_abandoned(std::uint64_t& used) {
  bool found = false;
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if ((states_[i] & kKind) != kInWork || files_.being_prepared(i)) continue;
    files_.remove(i);
    states_[i] = kAway;
    used -= shards_[i].most;
    found = true;
  }
  return found;
}

bool CacheLimit::make_room(std::size_t shard) {
  const Locked locked(*this);
  states_[shard] = kAway;  // it may count as ready although its file is gone
  std::uint64_t used = count();
  while (used + shards_[shard].most > limit_)
    if (!remove_coldest(used) && !remove_abandoned(used)) return false;
  states_[shard] = kInWork;
  return true;
}

void CacheLimit::reserve(std::size_t shard) {
  if (shards_[shard].most == 0) return;
  // Waiting ends, because shards in preparation have their room and will finish.
  while (!make_room(shard)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

void CacheLimit::ready(std::size_t shard) {
  if (shards_[shard].most == 0) return;
  const Locked locked(*this);
  states_[shard] = files_.present(shard) ? ready_now() : kAway;
}

void CacheLimit::give_up(std::size_t shard) {
  const Locked locked(*this);
  states_[shard] = kAway;
}

void CacheLimit::touch(std::size_t shard) {
  std::uint64_t state = states_[shard].load(std::memory_order_relaxed);
  if ((state & kKind) == kReady) states_[shard].compare_exchange_strong(state, ready_now(), std::memory_order_relaxed);
}

bool CacheLimit::is_ready(std::size_t shard) const {
  return shards_[shard].most == 0 || (states_[shard].load(std::memory_order_relaxed) & kKind) == kReady;
}

std::uint64_t CacheLimit::removals() const { return header_->removals.load(std::memory_order_relaxed); }

}  // namespace wt
