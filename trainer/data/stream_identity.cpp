// What a stream is, and that it stays so while it is read.
#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "configs/base/error.hpp"
#include "trainer/data/mds_hash.hpp"
#include "trainer/data/stream_folder.hpp"

namespace wt {

namespace fs = std::filesystem;

std::optional<StreamFolder::FileId> StreamFolder::file_id(const fs::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return std::nullopt;
  return FileId{found.st_dev, found.st_ino, static_cast<std::uint64_t>(found.st_size),
                found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec};
}

/// The ends of shards, where their last samples are: of fixed length, two data sets may differ in nothing else.
StreamIdentity StreamFolder::identity() const {
  constexpr std::size_t kMostShards = 16, kOfShard_bytes = 64 << 10;
  StreamIdentity out = identity_of_index(spec_.name, shards_);
  if (!out.hashes.empty() || has_remote()) return out;
  std::string ends;
  const std::size_t count = std::min(kMostShards, shards_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const MdsShard& shard = shards_[i * shards_.size() / count];
    const fs::path file = folder_ / (shard.zip ? shard.zip->basename : shard.raw.basename);
    if (!fs::exists(file)) return out;  // what is there differs from time to time
    const detail::MappedFile data(file);
    const auto end = data.bytes().last(std::min(data.bytes().size(), kOfShard_bytes));
    ends += mds_hash("xxh3_64", {end}) + "\n";
  }
  out.contents = mds_hash("xxh3_64", {std::as_bytes(std::span(ends))});
  return out;
}

/// `failed`: a shard was not as the index that was opened says, so that any other index explains it.
void StreamFolder::check_index(std::string_view text, const std::string& origin, bool failed) const {
  if (mds_hash("xxh3_64", {std::as_bytes(std::span(text))}) == index_hash_) return;
  std::string wrong;
  try {
    wrong = difference(identity_of_index(spec_.name, shards_),
                       identity_of_index(spec_.name, parse_mds_index(text, origin)));
  } catch (const Error& e) {
    wrong = e.what();
  }
  if (wrong.empty() && failed) wrong = "another index";
  if (wrong.empty()) return;
  throw_usage(
      "{}: the data set was replaced while it was read: found {}; allowed is the one that this process began with; put "
      "that back, or begin another run with the new one",
      origin, wrong);
}

void StreamFolder::check_local_index() const {
  const fs::path file = folder_ / kMdsIndexName;
  const std::optional<FileId> now = file_id(file);
  if (!now || now == index_id_) return;
  const detail::MappedFile text(file);
  check_index(text.text(), file.string(), false);
}

/// Of an index that is longer, its length alone. A remote without one, or that does not answer, says nothing.
void StreamFolder::check_remote_index(std::uint64_t most_bytes, bool failed) const try {
  const std::optional<std::uint64_t> bytes = store_->size(kMdsIndexName);
  if (!bytes || (*bytes == index_bytes_ && *bytes > most_bytes)) return;
  check_index(store_->read(kMdsIndexName, *bytes), fmt::format("{}/{}", store_->address(), kMdsIndexName), failed);
} catch (const StoreFailed&) {
}

}  // namespace wt
