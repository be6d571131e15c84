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

std::uint32_t u32_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The payload of one column of a sample, or nothing when the sample's lengths do not add up.
std::optional<std::span<const std::byte>> payload_of(std::span<const std::byte> sample,
                                                     const std::vector<MdsColumn>& columns, std::size_t wanted) {
  std::uint64_t head = 0;
  for (const MdsColumn& column : columns) head += column.encoding.size ? 0 : 4;
  if (head > sample.size()) return std::nullopt;
  std::uint64_t begin = head;
  std::uint64_t wanted_begin = 0;
  std::uint64_t wanted_size = 0;
  std::size_t next_length = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::optional<std::uint32_t> fixed = columns[i].encoding.size;
    const std::uint64_t size = fixed ? *fixed : u32_at(sample, next_length);
    if (!fixed) next_length += 4;
    if (i == wanted) {
      wanted_begin = begin;
      wanted_size = size;
    }
    begin += size;
  }
  if (begin != sample.size()) return std::nullopt;
  return sample.subspan(wanted_begin, wanted_size);
}

fs::path existing_shard(const fs::path& directory, const MdsShard& entry) {
  fs::path file = directory / entry.basename;
  std::error_code error;
  if (fs::exists(file, error)) return file;
  if (entry.zip_basename && fs::exists(directory / *entry.zip_basename, error)) {
    throw_error(Code::usage,
                "{}: found only the compressed {}, allowed are uncompressed shards; decompress it beside index.json",
                file.string(), *entry.zip_basename);
  }
  throw_error(Code::usage,
              "{}: the shard is missing, allowed is every shard that index.json names; fetch or pack the dataset again",
              file.string());
}

}  // namespace

MdsReader::MdsReader(const fs::path& directory, const std::string& column) : directory_(directory) {
  for (MdsShard& entry : read_mds_index(directory)) {
    const fs::path file = existing_shard(directory, entry);
    const std::size_t at = column_of(entry, column);
    shards_.push_back({std::move(entry), file, detail::MappedFile(file), at});
    check(shards_.back());
    size_ += shards_.back().entry.samples;
    ends_.push_back(size_);
  }
  if (size_ == 0) {
    throw_error(Code::usage, "{}: found no sample, allowed is a dataset of at least one; pack some data",
                (directory / kMdsIndexName).string());
  }
}

std::size_t MdsReader::column_of(const MdsShard& entry, const std::string& name) const {
  const auto found = std::find_if(entry.columns.begin(), entry.columns.end(),
                                  [&](const MdsColumn& column) { return column.name == name; });
  if (found == entry.columns.end() || !holds_tokens(found->encoding)) {
    std::vector<std::string> columns;
    for (const MdsColumn& column : entry.columns) columns.push_back(column.name + ": " + column.encoding.name);
    throw_error(Code::usage,
                "{}: {}: found the columns {}, allowed is a column '{}' of integer ndarrays (or bytes of int64); name "
                "the right "
                "column or tokenize the text",
                (directory_ / kMdsIndexName).string(), entry.basename, fmt::join(columns, ", "), name);
  }
  return static_cast<std::size_t>(found - entry.columns.begin());
}

void MdsReader::check(const OpenShard& shard) {
  const std::span<const std::byte> bytes = shard.data.bytes();
  const std::string file = shard.file.string();
  const auto samples = static_cast<std::size_t>(shard.entry.samples);
  if (bytes.size() != shard.entry.bytes) {
    throw_error(Code::usage, "{}: found {} bytes, allowed are the {} of index.json{}; fetch or pack the dataset again",
                file, bytes.size(), shard.entry.bytes,
                bytes.size() < shard.entry.bytes ? " (the file is cut off)" : "");
  }
  const std::size_t table = 4 + 4 * (samples + 1);
  const std::size_t found = bytes.size() < 4 ? 0 : u32_at(bytes, 0);
  if (found != samples)
    throw_error(Code::usage,
                "{}: found {} samples in the shard, allowed are the {} of index.json; fetch or pack the dataset again",
                file, found, samples);
  if (bytes.size() < table)
    throw_error(Code::usage,
                "{}: found {} bytes, needs {} for the offsets of its {} samples alone (the file is cut off); fetch or "
                "pack the dataset again",
                file, bytes.size(), table, samples);
  std::size_t previous = table;
  for (std::size_t i = 0; i <= samples; ++i) {
    const std::size_t offset = u32_at(bytes, 4 + 4 * i);
    if (offset < previous || (i == samples ? offset != bytes.size() : offset > bytes.size())) {
      throw_error(Code::usage,
                  "{}: found offset {} at place {}, allowed are rising offsets from {} to the file's end at {}; fetch "
                  "or pack the "
                  "dataset again",
                  file, offset, i, table, bytes.size());
    }
    previous = offset;
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
  const auto place = static_cast<std::size_t>(index - ends_[at] + shard.entry.samples);
  const std::span<const std::byte> bytes = shard.data.bytes();
  const std::size_t begin = u32_at(bytes, 4 * (1 + place));
  const std::size_t end = u32_at(bytes, 4 * (2 + place));
  const auto origin = [&] { return fmt::format("{}: sample {}", shard.file.string(), place); };
  const auto payload = payload_of(bytes.subspan(begin, end - begin), shard.entry.columns, shard.column);
  if (!payload) {
    throw_error(
        Code::usage,
        "{}: found column lengths that do not add up to its {} bytes, allowed are lengths that do; fetch or pack the "
        "dataset again",
        origin(), end - begin);
  }
  return decode_mds_tokens(shard.entry.columns[shard.column].encoding, *payload, origin());
}

void MdsReader::verify_hashes() const {
  for (const OpenShard& shard : shards_) {
    bool checked = false;
    for (const auto& [name, expected] : shard.entry.hashes) {
      if (!is_mds_hash(name)) continue;
      const std::string found = mds_hash(name, {shard.data.bytes()});
      if (found != expected) {
        throw_error(Code::usage, "{}: found {} {}, allowed is the {} of index.json; fetch or pack the dataset again",
                    shard.file.string(), name, found, expected);
      }
      checked = true;
    }
    if (!checked) {
      throw_error(Code::usage,
                  "{}: found no hash in index.json that can be checked, allowed are xxh32, xxh64, xxh3_64, xxh128; "
                  "write the dataset "
                  "with one of these",
                  shard.file.string());
    }
  }
}

}  // namespace wt
