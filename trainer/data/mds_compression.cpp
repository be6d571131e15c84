#include "trainer/data/mds_compression.hpp"

#include <brotli/decode.h>
#include <brotli/encode.h>
#include <bzlib.h>
#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "configs/base/error.hpp"
#include "configs/base/parsed.hpp"

namespace wt {

/// The problem with a stream; none if it filled `raw` exactly and ended there.
using Fault = std::optional<std::string_view>;

struct MdsCodec {
  std::string_view name;
  int lowest, highest, usual;  ///< levels; all equal if the format has none
  std::string (*compress)(std::span<const std::byte> raw, int level);
  Fault (*decompress)(std::span<const std::byte> zip, std::string& raw);
};

namespace {

constexpr int kGzip = 16 + MAX_WBITS;  // zlib's way to ask for the gzip header

char* as_chars(const std::byte* data) { return reinterpret_cast<char*>(const_cast<std::byte*>(data)); }
Bytef* as_bytef(const std::byte* data) { return reinterpret_cast<Bytef*>(const_cast<std::byte*>(data)); }

// Each compresses to one stream; empty: it could not.
std::string compress_zstd(std::span<const std::byte> raw, int level) {
  std::string zip(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size = ZSTD_compress(zip.data(), zip.size(), raw.data(), raw.size(), level);
  zip.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return zip;
}

std::string compress_gz(std::span<const std::byte> raw, int level) {
  z_stream stream{};
  if (deflateInit2(&stream, level, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) return "";
  std::string zip(deflateBound(&stream, raw.size()), '\0');
  stream.next_in = as_bytef(raw.data());
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = reinterpret_cast<Bytef*>(zip.data());
  stream.avail_out = static_cast<uInt>(zip.size());
  zip.resize(deflate(&stream, Z_FINISH) == Z_STREAM_END ? stream.total_out : 0);
  deflateEnd(&stream);
  return zip;
}

std::string compress_br(std::span<const std::byte> raw, int level) {
  std::size_t size = BrotliEncoderMaxCompressedSize(raw.size());
  std::string zip(size, '\0');
  const BROTLI_BOOL done = BrotliEncoderCompress(level, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_GENERIC, raw.size(),
                                                 reinterpret_cast<const std::uint8_t*>(raw.data()), &size,
                                                 reinterpret_cast<std::uint8_t*>(zip.data()));
  zip.resize(done == BROTLI_TRUE ? size : 0);
  return zip;
}

std::string compress_bz2(std::span<const std::byte> raw, int level) {
  auto size = static_cast<unsigned>(raw.size() + raw.size() / 100 + 601);  // the manual's bound plus one
  std::string zip(size, '\0');
  const int done =
      BZ2_bzBuffToBuffCompress(zip.data(), &size, as_chars(raw.data()), static_cast<unsigned>(raw.size()), level, 0, 0);
  zip.resize(done == BZ_OK ? size : 0);
  return zip;
}

std::string compress_snappy(std::span<const std::byte> raw, int) {
  std::string zip;
  snappy::Compress(as_chars(raw.data()), raw.size(), &zip);
  return zip;
}

constexpr std::string_view kMore = "a stream of more bytes";
constexpr std::string_view kFewer = "a stream that is cut off or shorter";
constexpr std::string_view kDamaged = "a damaged stream";

Fault decompress_zstd(std::span<const std::byte> zip, std::string& raw) {
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), zip.data(), zip.size());
  if (ZSTD_isError(size) != 0) {
    // A frame's own size is not trusted; it is only used in the message.
    const unsigned long long said = ZSTD_getFrameContentSize(zip.data(), zip.size());
    const bool known = said != ZSTD_CONTENTSIZE_ERROR && said != ZSTD_CONTENTSIZE_UNKNOWN;
    return known && said > raw.size() ? kMore : kDamaged;
  }
  return size == raw.size() ? Fault() : Fault(kFewer);
}

/// As in Python's gzip: several members in sequence, then optional zeros.
Fault decompress_gz(std::span<const std::byte> zip, std::string& raw) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) return kDamaged;
  stream.next_in = as_bytef(zip.data());
  stream.avail_in = static_cast<uInt>(zip.size());
  stream.next_out = reinterpret_cast<Bytef*>(raw.data());
  stream.avail_out = static_cast<uInt>(raw.size());
  Fault fault;
  while (true) {
    const int result = inflate(&stream, Z_FINISH);
    if (result != Z_STREAM_END) {
      fault = result == Z_DATA_ERROR ? kDamaged : stream.avail_out == 0 && stream.avail_in > 0 ? kMore : kFewer;
      break;
    }
    while (stream.avail_in > 0 && *stream.next_in == 0) ++stream.next_in, --stream.avail_in;
    if (stream.avail_in == 0) {
      if (stream.avail_out > 0) fault = kFewer;
      break;
    }
    inflateReset(&stream);
  }
  inflateEnd(&stream);
  return fault;
}

Fault decompress_bz2(std::span<const std::byte> zip, std::string& raw) {
  bz_stream stream{};
  stream.next_in = as_chars(zip.data());
  stream.avail_in = static_cast<unsigned>(zip.size());
  stream.next_out = raw.data();
  stream.avail_out = static_cast<unsigned>(raw.size());
  while (true) {  // several streams in sequence, as in Python's bz2
    if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK) return kDamaged;
    int result = BZ_OK;
    char beyond = 0;  // input is exhausted, but reaching the end of the stream may need another call
    bool more = false;
    while (result == BZ_OK) {
      const unsigned in = stream.avail_in, out = stream.avail_out;
      if (out == 0) stream.next_out = &beyond, stream.avail_out = 1;
      result = BZ2_bzDecompress(&stream);
      if (out == 0) {
        more = stream.avail_out == 0;
        stream.avail_out = 0;
      }
      if (more || (result == BZ_OK && stream.avail_in == in && stream.avail_out == out)) break;
    }
    BZ2_bzDecompressEnd(&stream);
    if (more) return kMore;
    if (result == BZ_OK) return kFewer;
    if (result != BZ_STREAM_END) return kDamaged;
    if (stream.avail_in == 0) return stream.avail_out == 0 ? Fault() : Fault(kFewer);
  }
}

Fault decompress_br(std::span<const std::byte> zip, std::string& raw) {
  BrotliDecoderState* const state = BrotliDecoderCreateInstance(nullptr, nullptr, nullptr);
  std::size_t in = zip.size(), out = raw.size();
  const auto* next_in = reinterpret_cast<const std::uint8_t*>(zip.data());
  auto* next_out = reinterpret_cast<std::uint8_t*>(raw.data());
  const BrotliDecoderResult result = BrotliDecoderDecompressStream(state, &in, &next_in, &out, &next_out, nullptr);
  BrotliDecoderDestroyInstance(state);
  if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) return kMore;
  if (result == BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT) return kFewer;
  if (result != BROTLI_DECODER_RESULT_SUCCESS || in > 0) return kDamaged;
  return out == 0 ? Fault() : Fault(kFewer);
}

Fault decompress_snappy(std::span<const std::byte> zip, std::string& raw) {
  std::size_t size = 0;
  if (!snappy::GetUncompressedLength(as_chars(zip.data()), zip.size(), &size)) return kDamaged;
  if (size != raw.size()) return size > raw.size() ? kMore : kFewer;
  return snappy::RawUncompress(as_chars(zip.data()), zip.size(), raw.data()) ? Fault() : Fault(kDamaged);
}

constexpr MdsCodec kCodecs[] = {{"zstd", 1, 22, 3, compress_zstd, decompress_zstd},
                                {"gz", 0, 9, 9, compress_gz, decompress_gz},
                                {"br", 0, 11, 11, compress_br, decompress_br},
                                {"bz2", 1, 9, 9, compress_bz2, decompress_bz2},
                                {"snappy", 0, 0, 0, compress_snappy, decompress_snappy}};

}  // namespace

MdsCompression mds_compression_from_string(const std::string& name, const std::string& origin) {
  const std::string_view word = name;
  const auto colon = word.find(':');
  const auto* const codec = std::ranges::find(kCodecs, word.substr(0, colon), &MdsCodec::name);
  bool right = codec != std::end(kCodecs);
  int level = right ? codec->usual : 0;
  if (right && colon != std::string_view::npos) {
    level = parsed<int>(word.substr(colon + 1)).value_or(-1);
    right = codec->lowest < codec->highest && codec->lowest <= level && level <= codec->highest;
  }
  if (!right)
    throw_usage(
        "{}: compression: found '{}', allowed are zstd[:1-22], gz[:0-9], br[:0-11], bz2[:1-9] and snappy; name one of "
        "these",
        origin, name);
  return {codec, level, name, std::string(codec->name)};
}

std::string compress_mds(const MdsCompression& compression, std::span<const std::byte> raw) {
  std::string zip = compression.codec->compress(raw, compression.level);
  if (zip.empty())
    throw_runtime("{}: compressing {} bytes failed, allowed is what fits the memory; write smaller shards",
                  compression.name, raw.size());
  return zip;
}

std::string decompress_mds(const MdsCompression& compression, std::span<const std::byte> zip, std::uint64_t bytes,
                           const std::string& origin) {
  std::string raw(bytes, '\0');
  // zlib and bzip2 use 32-bit sizes. Valid shards and their files are smaller.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  const Fault fault = zip.size() > kMost || bytes > kMost ? kMore : compression.codec->decompress(zip, raw);
  if (fault)
    throw_usage("{}: {}: found {}, allowed are the {} bytes of index.json; fetch or pack the shard again", origin,
                compression.name, *fault, bytes);
  return raw;
}

}  // namespace wt
