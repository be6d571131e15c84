// Writes MDS shards that Streaming's own reader can open. Files are written to a hidden directory next to the target,
// index.json last, and renamed at the end: the target always has either the complete data set or its old content.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/mds_index.hpp"

namespace wt {

struct MdsWriterOptions {
  std::vector<std::string> hashes = {"xxh3_64"};  ///< of each shard, and of its compressed file; mds_hash.hpp
  std::uint64_t size_limit = 1 << 26;             ///< bytes of a shard before compression, below 2^32
  std::string compression = {};                   ///< mds_compression.hpp: "zstd:7"; empty for none
  bool overwrite = false;                         ///< replace an earlier data set with the same columns
};

struct MdsSummary {
  std::int64_t shards = 0;
  std::int64_t samples = 0;
  std::uint64_t bytes = 0;   ///< of all shards, uncompressed
  std::uint64_t stored = 0;  ///< of the files
};

class MdsWriter {
 public:
  /// columns: name to encoding. `out` may be missing or an empty directory; with options.overwrite also an earlier data
  /// set with exactly these columns and nothing else in it, which finish() replaces. Throws Error{usage} for anything
  /// else and for unknown encodings, hashes or compressions.
  MdsWriter(std::filesystem::path out, const std::map<std::string, std::string>& columns,
            MdsWriterOptions options = {});
  /// Removes what was written, unless finish() succeeded.
  ~MdsWriter();
  MdsWriter(const MdsWriter&) = delete;
  MdsWriter& operator=(const MdsWriter&) = delete;

  /// Writes one encoded payload (mds_encoding.hpp) per column, with columns sorted by name. Throws Error{usage} when
  /// their number or sizes do not match the columns, Error{runtime} when the disk is full.
  void write(std::span<const std::string> payloads);
  /// Writes a sample of a data set whose only column is ndarray:uint16.
  void write_tokens(std::span<const std::uint16_t> tokens);
  /// Writes the last shard and the index, and moves the data set to its place. Throws Error{usage} without samples.
  MdsSummary finish();

 private:
  void flush_shard();
  std::uint64_t empty_shard_bytes() const { return 8 + config_.size(); }

  std::filesystem::path out_;
  MdsWriterOptions options_;
  MdsShard template_;   ///< columns, hash names, compression and size limit that all shards share
  std::string config_;  ///< the JSON header of every shard
  std::filesystem::path partial_;
  std::vector<MdsShard> shards_;
  std::vector<std::uint32_t> ends_;  ///< end offsets of the samples in body_
  std::string body_;                 ///< samples of the shard that is being filled
};

}  // namespace wt
