// Column encodings of Mosaic's MDS shards: their names and sizes, and reading and writing token columns. All values are
// little endian.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace wt {

/// Element types of an ndarray; the value is the type byte of the format.
enum class MdsType : std::uint8_t {
  u8 = 8,
  i8 = 9,
  u16 = 16,
  i16 = 17,
  f16 = 18,
  u32 = 32,
  i32 = 33,
  f32 = 34,
  u64 = 64,
  i64 = 65,
  f64 = 66
};

/// An encoding such as "int", "bytes", "ndarray", "ndarray:uint16" or "ndarray:uint16:2,3".
struct MdsEncoding {
  std::string name;                       ///< as written in index.json
  std::optional<std::uint32_t> size;      ///< bytes of a value, if the encoding fixes it
  std::optional<MdsType> type;            ///< of an ndarray with a type in its name
  std::optional<std::uint64_t> elements;  ///< of an ndarray with a shape in its name
  bool is_ndarray = false;
};

/// Throws Error{usage} with origin for words that MDS does not have, and for "pkl": unpickling runs code from the file.
MdsEncoding mds_encoding_from_string(const std::string& word, const std::string& origin);

/// A one-dimensional "ndarray:uint16" or "ndarray:int32". Throws Error{usage} when it is empty, which MDS forbids.
std::string encode_mds_tokens(std::span<const std::uint16_t> tokens);
std::string encode_mds_tokens(std::span<const std::int32_t> tokens);

/// Reads token ids from a payload: any integer ndarray of any shape (flattened), or "bytes" with int64 values. Throws
/// Error{usage} with origin when type, shape and length disagree or an id is not in 0..2^31-1.
std::vector<std::int32_t> decode_mds_tokens(const MdsEncoding& encoding, std::span<const std::byte> payload,
                                            const std::string& origin);
/// Whether decode_mds_tokens supports the encoding.
bool holds_tokens(const MdsEncoding& encoding);

}  // namespace wt
