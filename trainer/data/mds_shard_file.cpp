#include "trainer/data/mds_shard_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <ranges>

#include "configs/base/error.hpp"
#include "configs/base/lists.hpp"
#include "trainer/data/mds_hash.hpp"

namespace wt {
namespace {

std::uint32_t u32_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The payload of one column of a sample, or nothing when the sample's sizes are inconsistent.
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

/// By measured rate (bench/studies/shards), the quickest first.
constexpr std::array<const char*, 17> kQuickest = {"xxh3_64", "xxh3_128", "xxh128",   "xxh64",    "xxh32",   "sha1",
                                                   "sha256",  "sha224",   "blake2b",  "md5",      "sha512",  "sha384",
                                                   "blake2s", "sha3_224", "sha3_256", "sha3_384", "sha3_512"};

}  // namespace

std::size_t token_column(const MdsShard& shard, const std::string& name, const std::string& origin) {
  const auto found = std::ranges::find_if(*shard.columns, [&](const MdsColumn& column) { return column.name == name; });
  const bool turns = name == kTurnsColumn;
  const bool holds =
      found != shard.columns->end() && (turns ? found->encoding.name == "json" : holds_tokens(found->encoding));
  if (!holds) {
    const std::string columns = column_list(*shard.columns);
    if (turns)
      throw_usage(
          "{}: {}: found the columns {}, allowed for a loader named finetuning is a column '{}' of json; pack the "
          "examples with `windtunnel data pack --samples finetune`",
          origin, shard.raw.basename, columns, name);
    throw_usage(
        "{}: {}: found the columns {}, allowed is a column '{}' of integer ndarrays (or bytes of int64); name the "
        "right column or tokenize the text",
        origin, shard.raw.basename, columns, name);
  }
  return static_cast<std::size_t>(found - shard.columns->begin());
}

MdsShardFile::MdsShardFile(const std::filesystem::path& file, const MdsShard& entry, std::size_t column)
    : file_(file), columns_(entry.columns), column_(column), data_(file) {
  check(entry);
}

void MdsShardFile::check(const MdsShard& entry) const {
  const std::span<const std::byte> bytes = data_.bytes();
  const std::string file = file_.string();
  const auto samples = static_cast<std::size_t>(entry.samples);
  if (bytes.size() != entry.raw.bytes)
    throw_usage("{}: found {} bytes, allowed are the {} of index.json{}; fetch or pack the dataset again", file,
                bytes.size(), entry.raw.bytes, bytes.size() < entry.raw.bytes ? " (the file is cut off)" : "");
  const std::size_t table = 4 + 4 * (samples + 1);
  const std::size_t found = bytes.size() < 4 ? 0 : u32_at(bytes, 0);
  if (found != samples)
    throw_usage("{}: found {} samples in the shard, allowed are the {} of index.json; fetch or pack the dataset again",
                file, found, samples);
  if (bytes.size() < table)
    throw_usage(
        "{}: found {} bytes, needs {} for the offsets of its {} samples alone (the file is cut off); fetch or pack the "
        "dataset again",
        file, bytes.size(), table, samples);
  std::size_t previous = table;
  for (std::size_t i = 0; i <= samples; ++i) {
    const std::size_t offset = u32_at(bytes, 4 + 4 * i);
    if (offset < previous || (i == samples ? offset != bytes.size() : offset > bytes.size()))
      throw_usage(
          "{}: found offset {} at place {}, allowed are rising offsets from {} to the file's end at {}; fetch or pack "
          "the dataset again",
          file, offset, i, table, bytes.size());
    previous = offset;
  }
}

std::span<const std::byte> MdsShardFile::payload(std::size_t place) const {
  const std::span<const std::byte> bytes = data_.bytes();
  const std::size_t begin = u32_at(bytes, 4 * (1 + place));
  const std::size_t end = u32_at(bytes, 4 * (2 + place));
  const auto found = payload_of(bytes.subspan(begin, end - begin), *columns_, column_);
  if (!found)
    throw_usage(
        "{}: sample {}: found column lengths that do not add up to its {} bytes, allowed are lengths that do; fetch or "
        "pack the dataset again",
        file_.string(), place, end - begin);
  return *found;
}

std::vector<std::int32_t> MdsShardFile::tokens(std::size_t place) const {
  return decode_mds_tokens((*columns_)[column_].encoding, payload(place),
                           fmt::format("{}: sample {}", file_.string(), place));
}

std::string quickest_hash(const MdsFile& entry, const std::string& wanted, const std::string& origin) {
  if (!wanted.empty()) {
    if (entry.hashes.contains(wanted) && is_mds_hash(wanted)) return wanted;
    throw_usage("{}: validate_hash: found {}, allowed are the hashes of index.json ({}); name one of them", origin,
                wanted, entry.hashes.empty() ? "none" : joined(std::views::keys(entry.hashes), ", "));
  }
  const auto* const found =
      std::ranges::find_if(kQuickest, [&](const char* name) { return entry.hashes.contains(name); });
  return found == kQuickest.end() ? "" : *found;
}

void check_hash(const MdsFile& entry, const std::string& name, std::span<const std::byte> bytes,
                const std::string& origin) {
  const std::string found = mds_hash(name, {bytes});
  const std::string& expected = entry.hashes.at(name);
  if (found != expected)
    throw_usage("{}: found {} {}, allowed is the {} of index.json; fetch or pack the dataset again", origin, name,
                found, expected);
}

}  // namespace wt
