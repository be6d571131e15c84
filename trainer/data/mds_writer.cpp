#include "trainer/data/mds_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "configs/base/error.hpp"
#include "trainer/data/detail/file_io.hpp"
#include "trainer/data/mds_compression.hpp"
#include "trainer/data/mds_hash.hpp"

namespace wt {
namespace fs = std::filesystem;
namespace {

void append_u32(std::string& bytes, std::uint64_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
}

/// Whether a directory has a data set with these columns and nothing else, so that replacing it loses nothing else.
bool is_earlier_dataset(const fs::path& directory, const std::vector<MdsColumn>& columns) {
  std::set<std::string> files = {kMdsIndexName};
  try {
    for (const MdsShard& shard : read_mds_index(directory)) {
      const bool same = std::equal(shard.columns->begin(), shard.columns->end(), columns.begin(), columns.end(),
                                   [](const MdsColumn& a, const MdsColumn& b) {
                                     return a.name == b.name && a.encoding.name == b.encoding.name;
                                   });
      if (!same) return false;
      files.insert(shard.raw.basename);
      if (shard.zip) files.insert(shard.zip->basename);
    }
  } catch (const Error&) {
    return false;
  }
  return std::all_of(fs::directory_iterator(directory), fs::directory_iterator(),
                     [&](const fs::directory_entry& entry) {
                       const std::string name = entry.path().filename().string();  // readers leave lock and cache files
                       return files.contains(name) || name == ".shard-locks" || name == ".shard-table";
                     });
}

void check_target(const fs::path& out, const std::vector<MdsColumn>& columns, bool overwrite) {
  std::error_code error;
  if (fs::symlink_status(out, error).type() == fs::file_type::not_found) return;
  if (fs::is_directory(out, error) && !fs::is_symlink(out, error)) {
    const bool empty = fs::is_empty(out, error);
    if (!error && empty) return;
    if (!error && is_earlier_dataset(out, columns)) {
      if (overwrite) return;
      throw_usage(
          "{}: found a dataset, allowed is a new name or an empty directory; choose another output, or replace it with "
          "--overwrite",
          out.string());
    }
  }
  throw_usage(
      "{}: found something that is not an earlier dataset of the same columns, allowed is a new name, an empty "
      "directory or such a dataset, which is replaced; choose another output or remove it yourself",
      out.string());
}

}  // namespace

MdsWriter::MdsWriter(fs::path out, const std::map<std::string, std::string>& columns, MdsWriterOptions options)
    : out_(std::move(out)), options_(std::move(options)) {
  if (!out_.has_filename()) out_ = out_.parent_path();  // "dir/" is "dir"
  if (out_.empty() || columns.empty() || options_.size_limit > std::numeric_limits<std::uint32_t>::max())
    throw_usage(
        "MDS writer: found output '{}', {} columns and size_limit {}, allowed are a path, at least one column and less "
        "than 2^32 bytes; give these",
        out_.string(), columns.size(), options_.size_limit);
  std::vector<MdsColumn> described;
  for (const auto& [name, encoding] : columns) {
    described.push_back({name, mds_encoding_from_string(encoding, out_.string())});
  }
  template_.columns = std::make_shared<const std::vector<MdsColumn>>(std::move(described));
  for (const auto& name : options_.hashes) template_.raw.hashes[name] = mds_hash(name, {});  // throws for unknown names
  if (!options_.compression.empty()) mds_compression_from_string(options_.compression, out_.string());
  template_.compression = options_.compression;
  template_.size_limit = options_.size_limit;
  config_ = python_json(mds_shard_config(template_));
  check_target(out_, *template_.columns, options_.overwrite);
  partial_ = detail::make_directory_beside(out_);
}

MdsWriter::~MdsWriter() {
  std::error_code ignored;
  if (!partial_.empty()) fs::remove_all(partial_, ignored);
}

void MdsWriter::write(std::span<const std::string> payloads) {
  if (payloads.size() != template_.columns->size())
    throw_usage("{}: found a sample of {} columns, allowed are {}; give one payload for each column", out_.string(),
                payloads.size(), template_.columns->size());
  std::string sample;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    const std::optional<std::uint32_t> size = (*template_.columns)[i].encoding.size;
    if (!size) append_u32(sample, payloads[i].size());
    if (payloads[i].size() > std::numeric_limits<std::uint32_t>::max() || (size && payloads[i].size() != *size))
      throw_usage("{}: column {}: found {} bytes, allowed is what {} takes and less than 2^32; encode the value so",
                  out_.string(), (*template_.columns)[i].name, payloads[i].size(),
                  (*template_.columns)[i].encoding.name);
  }
  for (const std::string& payload : payloads) sample += payload;

  const std::uint64_t before = empty_shard_bytes() + body_.size() + 4 * ends_.size();
  if (!ends_.empty() && options_.size_limit < before + sample.size() + 4) flush_shard();
  if (empty_shard_bytes() + body_.size() + sample.size() + 4 * (ends_.size() + 1) >
      std::numeric_limits<std::uint32_t>::max())
    throw_usage("{}: found a sample of {} bytes, allowed is what fits a shard of 2^32 - 1; cut the sample",
                out_.string(), sample.size());
  body_ += sample;
  ends_.push_back(static_cast<std::uint32_t>(body_.size()));
}

void MdsWriter::write_tokens(std::span<const std::uint16_t> tokens) {
  const std::string payload = encode_mds_tokens(tokens);
  write({&payload, 1});
}

void MdsWriter::flush_shard() {
  const std::uint64_t first = 4 + 4 * (ends_.size() + 1) + config_.size();
  std::string head;
  append_u32(head, ends_.size());
  append_u32(head, first);
  for (const std::uint32_t end : ends_) append_u32(head, first + end);
  head += config_;

  MdsShard shard = template_;
  shard.raw.basename = fmt::format("shard.{:05}.mds", shards_.size());
  shard.raw.bytes = head.size() + body_.size();
  shard.samples = static_cast<std::int64_t>(ends_.size());
  for (auto& [name, value] : shard.raw.hashes) {
    value = mds_hash(name, {std::as_bytes(std::span(head)), std::as_bytes(std::span(body_))});
  }
  if (options_.compression.empty()) {
    detail::write_synced(partial_ / shard.raw.basename, head, body_);
  } else {
    const MdsCompression compression = mds_compression_from_string(options_.compression, out_.string());
    const std::string zip = compress_mds(compression, std::as_bytes(std::span(head += body_)));
    shard.zip = MdsFile{shard.raw.basename + "." + compression.suffix, zip.size(), {}};
    for (const auto& [name, value] : shard.raw.hashes)
      shard.zip->hashes[name] = mds_hash(name, {std::as_bytes(std::span(zip))});
    detail::write_synced(partial_ / shard.zip->basename, zip);
  }
  shards_.push_back(std::move(shard));
  body_.clear();
  ends_.clear();
}

MdsSummary MdsWriter::finish() {
  if (!ends_.empty()) flush_shard();
  if (shards_.empty())
    throw_usage("{}: found no sample to write, allowed is a dataset of at least one; give more data", out_.string());
  detail::write_synced(partial_ / kMdsIndexName, python_json(mds_index(shards_)));
  detail::sync_directory(partial_);
  check_target(out_, *template_.columns, options_.overwrite);  // it may have changed since the beginning
  detail::move_into_place(partial_, out_);
  partial_.clear();
  MdsSummary summary{static_cast<std::int64_t>(shards_.size()), 0, 0, 0};
  for (const MdsShard& shard : shards_) {
    summary.samples += shard.samples;
    summary.bytes += shard.raw.bytes;
    summary.stored += shard.zip ? shard.zip->bytes : shard.raw.bytes;
  }
  return summary;
}

}  // namespace wt
