#include "trainer/data/stream_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <system_error>
#include <utility>

#include "configs/base/clock.hpp"
#include "configs/base/error.hpp"
#include "trainer/data/mds_compression.hpp"
#include "trainer/data/mds_hash.hpp"

namespace wt {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kIndexPlace = std::uint64_t{1} << 40;  // lock place of the index, above all shards
constexpr const char* kLockName = ".shard-locks";
constexpr const char* kPart = ".windtunnel-part";  // suffix of incomplete files; no shard may be named so

fs::path part_of(const fs::path& file) { return file.string() + kPart; }

void remove_file(const fs::path& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
}

/// Removes an incomplete file.
class Unfinished {
 public:
  explicit Unfinished(fs::path file) : file_(std::move(file)) {}
  ~Unfinished() {
    if (!file_.empty()) remove_file(file_);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void move_to(const fs::path& name) {
    std::error_code error;
    fs::rename(file_, name, error);
    if (error)
      throw_runtime("{}: renaming {} failed: {}; allowed is a folder that can be written; choose another",
                    name.string(), file_.string(), error.message());
    file_.clear();
  }
  void keep() { file_.clear(); }

 private:
  fs::path file_;
};

/// Releases a place of a lock.
class Held {
 public:
  Held(detail::RangeLock& lock, std::uint64_t place) : lock_(lock), place_(place) {}
  ~Held() { lock_.unlock(place_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  detail::RangeLock& lock_;
  std::uint64_t place_;
};

void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw_runtime("{}: creating the folder failed: {}; allowed is a place that can be written; name another as `local`",
                  folder.string(), error.message());
}

/// The cache folder of a stream without `local`: shared by a user's processes, inaccessible to other users.
fs::path temporary_folder(const StreamSpec& spec) {
  const std::string hash = mds_hash("blake2s", {std::as_bytes(std::span(spec.remote))}).substr(0, 32);
  const fs::path root = fs::temp_directory_path() / fmt::format("windtunnel-{}-{}", ::geteuid(), hash);
  ::mkdir(root.c_str(), 0700);
  struct stat status {};
  if (::lstat(root.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    throw_runtime("{}: found no folder of our own, allowed is one that we can make there; name a folder as `local`",
                  root.string());
  return root / spec.split;
}

fs::path folder_of(const StreamSpec& spec) {
  if (!spec.local.empty()) return spec.local_folder();
  if (!spec.remote.empty()) return temporary_folder(spec);
  throw_usage("stream '{}': found neither remote nor local, allowed is at least one; name a folder as `local`",
              spec.name);
}

bool same_place(const std::string& remote, const fs::path& folder) {
  if (is_remote_address(remote)) return false;
  const std::string prefix = "file://";
  const fs::path other = remote.starts_with(prefix) ? remote.substr(prefix.size()) : remote;
  std::error_code none;
  return fs::weakly_canonical(other, none) == fs::weakly_canonical(folder, none);
}

}  // namespace

StreamFolder::StreamFolder(const StreamSpec& spec, const std::string& column, FetchOptions options)
    : spec_(spec), options_(std::move(options)), folder_(folder_of(spec)) {
  if (!spec.remote.empty() && !same_place(spec.remote_folder(), folder_)) {
    store_ = options_.open(spec.remote_folder());
    make_folders(folder_);
  }
  load_index(column);
}

void StreamFolder::load_index(const std::string& column) {
  const fs::path file = folder_ / kMdsIndexName;
  if (has_remote() && !fs::exists(file)) {
    lock().lock(kIndexPlace);
    if (!fs::exists(file)) {  // no other process has fetched it
      const fs::path part = part_of(file);
      remove_file(part);
      Unfinished fetched(part);
      const auto readable = [&](const fs::path& at) {
        const detail::MappedFile text(at);
        parse_mds_index(text.text(), fmt::format("{}/{}", store_->address(), kMdsIndexName));
      };
      fetch(kMdsIndexName, part, readable);
      fetched.move_to(file);
    }
    lock().unlock(kIndexPlace);
  }
  index_id_ = file_id(file);  // before it is read: what replaces it later has another
  shards_ = read_mds_index(folder_);
  const detail::MappedFile text(file);
  index_bytes_ = text.bytes().size();
  index_hash_ = mds_hash("xxh3_64", {text.bytes()});
  std::int64_t samples = 0;
  const std::vector<MdsColumn>* known = nullptr;
  std::uint16_t place = 0;
  columns_.reserve(shards_.size());
  for (const MdsShard& shard : shards_) {
    if (shard.columns.get() != known) {
      place = static_cast<std::uint16_t>(token_column(shard, column, file.string()));
      known = shard.columns.get();
    }
    columns_.push_back(place);
    samples += shard.samples;
  }
  if (samples == 0)
    throw_usage("{}: found no sample, allowed is a dataset of at least one; pack some data", file.string());
}

detail::RangeLock& StreamFolder::lock() {
  const std::lock_guard<std::mutex> guard(lock_mutex_);
  if (!lock_) lock_ = std::make_unique<detail::RangeLock>(folder_ / kLockName);
  return *lock_;
}

fs::path StreamFolder::inside(const std::string& basename) const {
  // mds_index.cpp has refused "..", so that only a link could lead outside.
  const fs::path file = folder_ / basename;
  std::error_code none;
  const fs::path real = fs::weakly_canonical(file, none), root = fs::weakly_canonical(folder_, none);
  if (std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end()) return file;
  throw_usage("{}: found a link to {}, allowed are files inside the folder; copy the file there", file.string(),
              real.string());
}

bool StreamFolder::present(std::size_t shard) const {
  std::error_code none;
  return fs::exists(folder_ / shards_[shard].raw.basename, none);
}

bool StreamFolder::prepared_elsewhere(std::size_t shard) { return lock().held_elsewhere(shard); }

void StreamFolder::fetch(const std::string& name, const fs::path& to,
                         const std::function<void(const fs::path&)>& check) const {
  const std::int64_t attempts = 1 + std::max<std::int64_t>(0, spec_.download_retry);
  for (std::int64_t attempt = 1;; ++attempt) {
    std::string why;
    bool final = attempt == attempts;
    try {
      store_->fetch(name, to, spec_.download_timeout_s);
      check(to);
      return;
    } catch (const StoreFailed& failed) {
      why = failed.what();
      using Kind = StoreFailed::Kind;
      final = final || failed.kind() == Kind::not_found || failed.kind() == Kind::denied ||
              failed.kind() == Kind::wrong_place;
    } catch (const Error& failed) {
      why = failed.what();
    }
    remove_file(to);
    if (final || options_.stopped())
      throw_runtime(
          "{}: fetching it from {} failed in {} attempt{} of at most {} s: {}; allowed is a file as index.json says; "
          "look at the remote, or raise download_retry or download_timeout",
          (folder_ / name).string(), store_->address(), attempt, attempt == 1 ? "" : "s", spec_.download_timeout_s,
          why);
    std::minstd_rand random(static_cast<unsigned>(::getpid()) + static_cast<unsigned>(attempt));
    const double jitter = 1 + 0.5 * static_cast<double>(random() % 1000) / 1000;
    const double pause_s = options_.first_pause_s * std::pow(2, static_cast<double>(attempt - 1)) * jitter;
    wait_until(pause_s, std::min(pause_s, 0.05), options_.stopped);
  }
}

void StreamFolder::check_file(const MdsFile& file, const fs::path& at, bool any_hash) const {
  const detail::MappedFile data(at);
  if (data.bytes().size() != file.bytes)
    throw_usage("{}: found {} bytes, allowed are the {} of index.json; fetch or pack the dataset again", at.string(),
                data.bytes().size(), file.bytes);
  const std::string hash = quickest_hash(file, spec_.validate_hash, at.string());
  if (hash.empty() || (!any_hash && spec_.validate_hash.empty() && !hash.starts_with("xxh"))) return;
  check_hash(file, hash, data.bytes(), at.string());
}

fs::path StreamFolder::fetch_part(const MdsFile& file) const {
  quickest_hash(file, spec_.validate_hash, (folder_ / file.basename).string());  // throws early: retries cannot help
  const fs::path part = part_of(inside(file.basename));
  make_folders(part.parent_path());
  inside(file.basename);  // checked again, now that its folder exists
  remove_file(part);
  try {
    fetch(file.basename, part, [&](const fs::path& at) { check_file(file, at, true); });
  } catch (const Error&) {
    check_remote_index(UINT64_MAX, true);  // then this is why
    throw;
  }
  if (!quickest_hash(file, "", part.string()).empty()) return part;
  Unfinished unproven(part);  // its length alone was compared: it may be of another data set
  check_remote_index(file.bytes, false);
  unproven.keep();
  return part;
}

void StreamFolder::make(std::size_t shard) const {
  const MdsShard& entry = shards_[shard];
  const fs::path raw = inside(entry.raw.basename);
  if (!entry.zip) {
    if (!has_remote())
      throw_usage(
          "{}: the shard is missing, allowed is every shard that index.json names; fetch or pack the dataset again",
          raw.string());
    Unfinished(fetch_part(entry.raw)).move_to(raw);
    return;
  }
  const fs::path zip = inside(entry.zip->basename);
  const bool stored = fs::exists(zip);
  if (!stored && !has_remote())
    throw_usage(
        "{}: the shard is missing, and so is its compressed file {}, allowed is every shard that index.json names; "
        "fetch or pack the dataset again",
        raw.string(), zip.string());
  if (stored) check_file(*entry.zip, zip, false);
  Unfinished fetched(stored ? fs::path() : fetch_part(*entry.zip));
  std::string bytes;
  {
    const detail::MappedFile data(stored ? zip : part_of(zip));
    bytes = decompress_mds(mds_compression_from_string(entry.compression, zip.string()), data.bytes(), entry.raw.bytes,
                           zip.string());
  }
  const std::string hash = quickest_hash(entry.raw, "", raw.string());
  if (hash.starts_with("xxh")) check_hash(entry.raw, hash, std::as_bytes(std::span(bytes)), raw.string());
  const fs::path part = part_of(raw);
  remove_file(part);
  Unfinished written(part);
  detail::write_synced(part, bytes);
  written.move_to(raw);
  if (!keeps_zip()) {
    if (stored) remove_file(zip);
  } else if (!stored) {
    fetched.move_to(zip);
  }
}

StreamFolder::Prepared StreamFolder::prepare(std::size_t shard, bool wait, const ShardMaking& making) {
  if (present(shard)) return Prepared::found;
  if (!has_remote() && !shards_[shard].zip) make(shard);  // throws, because the shard cannot be obtained
  if (wait) {
    lock().lock(shard);
  } else if (!lock().try_lock(shard)) {
    return Prepared::busy;
  }
  const Held held(lock(), shard);
  if (present(shard)) return Prepared::found;  // another process has prepared it in the meantime
  making.begins();
  try {
    make(shard);
  } catch (...) {
    making.failed();
    throw;
  }
  making.made();
  return Prepared::made;
}

void StreamFolder::unless_being_prepared(std::size_t shard, const std::function<void()>& act) {
  if (!lock().try_lock(shard)) return;
  const Held held(lock(), shard);
  act();
}

std::shared_ptr<const MdsShardFile> StreamFolder::open(std::size_t shard, bool verified) const {
  if (!has_remote()) check_local_index();
  const MdsShard& entry = shards_[shard];
  const fs::path file = inside(entry.raw.basename);
  auto opened = std::make_shared<const MdsShardFile>(file, entry, columns_[shard]);
  if (!verified) {
    // Streaming checks only the compressed file if there is one; the index has hashes of both.
    const std::string hash = quickest_hash(entry.raw, spec_.validate_hash, file.string());
    if (!hash.empty() && (!spec_.validate_hash.empty() || hash.starts_with("xxh")))
      check_hash(entry.raw, hash, opened->bytes(), file.string());
  }
  return opened;
}

void StreamFolder::remove(std::size_t shard) const {
  const MdsShard& entry = shards_[shard];
  const auto both = [&](const std::string& basename) {
    remove_file(folder_ / basename);
    remove_file(part_of(folder_ / basename));
  };
  both(entry.raw.basename);
  if (entry.zip) both(entry.zip->basename);
}

}  // namespace wt
