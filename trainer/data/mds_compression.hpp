// The compressions of MDS shards: zstd, gz, br, bz2 and snappy, by Streaming's names. A compressed shard is its whole
// file as one stream of the format, whose name is the file's suffix.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace wt {

struct MdsCodec;

struct MdsCompression {
  const MdsCodec* codec = nullptr;
  int level = 0;       ///< Streaming's default if the name has none; 0 for snappy
  std::string name;    ///< as written in index.json: "zstd:7"
  std::string suffix;  ///< of the compressed file, without the dot: "zstd"
};

/// "zstd[:1-22]", "gz[:0-9]", "br[:0-11]", "bz2[:1-9]", "snappy". Throws Error{usage} with origin for anything else.
MdsCompression mds_compression_from_string(const std::string& name, const std::string& origin);

/// A gz stream has no time stamp, so that equal bytes give equal files. Throws Error{runtime} when a library fails.
std::string compress_mds(const MdsCompression& compression, std::span<const std::byte> raw);

/// Decompresses exactly `bytes` bytes, the size in the index, and never uses more memory than that. Throws Error{usage}
/// with origin when the stream has more or fewer, is truncated, damaged, or followed by other data.
std::string decompress_mds(const MdsCompression& compression, std::span<const std::byte> zip, std::uint64_t bytes,
                           const std::string& origin);

}  // namespace wt
