#include "trainer/data/mds_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "configs/spec/support/error.hpp"
#include "trainer/data/mds_hash.hpp"

namespace wt {
namespace fs = std::filesystem;
namespace {

fs::path existing_shard(const fs::path& directory, const MdsShard& entry) {
  fs::path file = directory / entry.raw.basename;
  std::error_code error;
  if (fs::exists(file, error)) return file;
  if (entry.zip && fs::exists(directory / entry.zip->basename, error)) {
    throw_error(Code::usage,
                "{}: found only the compressed {}, allowed are uncompressed shards; decompress it beside index.json",
                file.string(), entry.zip->basename);
  }
  throw_error(Code::usage,
              "{}: the shard is missing, allowed is every shard that index.json names; fetch or pack the dataset again",
              file.string());
}

}  // namespace

MdsReader::MdsReader(const fs::path& directory, const std::string& column) : directory_(directory) {
  for (MdsShard& entry : read_mds_index(directory)) {
    const fs::path file = existing_shard(directory, entry);
    MdsShardFile data(file, entry, token_column(entry, column, (directory / kMdsIndexName).string()));
    shards_.push_back({std::move(entry), file, std::move(data)});
    size_ += shards_.back().entry.samples;
    ends_.push_back(size_);
  }
  if (size_ == 0) {
    throw_error(Code::usage, "{}: found no sample, allowed is a dataset of at least one; pack some data",
                (directory / kMdsIndexName).string());
  }
}

std::vector<std::int64_t> MdsReader::shard_sizes() const {
  std::vector<std::int64_t> sizes;
  for (const OpenShard& shard : shards_) sizes.push_back(shard.entry.samples);
  return sizes;
}

std::vector<std::int32_t> MdsReader::tokens(std::int64_t index) const {
  if (index < 0 || index >= size_) {
    throw_error(Code::usage, "{}: found sample {}, allowed are 0 to {}; use the sampler of this dataset",
                directory_.string(), index, size_ - 1);
  }
  const auto at = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
  const OpenShard& shard = shards_[at];
  return shard.data.tokens(static_cast<std::size_t>(index - ends_[at] + shard.entry.samples));
}

void MdsReader::verify_hashes() const {
  for (const OpenShard& shard : shards_) {
    bool checked = false;
    for (const auto& [name, value] : shard.entry.raw.hashes) {
      if (!is_mds_hash(name)) continue;
      check_hash(shard.entry.raw, name, shard.data.bytes(), shard.file.string());
      checked = true;
    }
    if (!checked) {
      throw_error(Code::usage,
                  "{}: found no hash in index.json that can be checked, allowed are {}; write the dataset with one of "
                  "these",
                  shard.file.string(), mds_hash_names());
    }
  }
}

}  // namespace wt
