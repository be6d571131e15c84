// The compressions of MDS shards: zstd, gz, br, bz2 and snappy, by Streaming's names. A compressed shard is its file's
// whole bytes in one stream of the format; the name of the format is the suffix of the file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace wt {

enum class MdsCodec : std::uint8_t { zstd, gz, br, bz2, snappy };

struct MdsCompression {
  MdsCodec codec = MdsCodec::zstd;
  int level = 0;       ///< Streaming's default where the name gives none; 0 of snappy
  std::string name;    ///< as written in index.json: "zstd:7"
  std::string suffix;  ///< of the compressed file, without the dot: "zstd"
};

/// "zstd[:1-22]", "gz[:0-9]", "br[:0-11]", "bz2[:1-9]", "snappy". Throws Error{usage} naming origin on anything else.
MdsCompression mds_compression_from_string(const std::string& name, const std::string& origin);

/// A gz stream carries no time, so that equal bytes give equal files. Throws Error{runtime} when a library fails.
std::string compress_mds(const MdsCompression& compression, std::span<const std::byte> raw);

/// The `bytes` bytes that `zip` holds: what the index says. Never takes more memory than that: throws Error{usage}
/// naming origin when the stream holds more or fewer, is cut off, damaged, or followed by something else.
std::string decompress_mds(const MdsCompression& compression, std::span<const std::byte> zip, std::uint64_t bytes,
                           const std::string& origin);

}  // namespace wt
