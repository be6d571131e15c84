#include "trainer/data/mds_encoding.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "configs/base/error.hpp"

namespace wt {
namespace {

static_assert(std::endian::native == std::endian::little, "MDS is little endian and is copied as it lies");

template <typename T>
std::vector<std::int32_t> narrow(std::span<const std::byte> values, const std::string& origin) {
  std::vector<std::int32_t> tokens(values.size() / sizeof(T));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    T value;  // payloads are not aligned
    std::memcpy(&value, values.data() + i * sizeof(T), sizeof(T));
    if (std::cmp_less(value, 0) || std::cmp_greater(value, std::numeric_limits<std::int32_t>::max()))
      throw_usage("{}: found token id {} at place {}, allowed are 0 to 2147483647; tokenize the text again", origin,
                  value, i);
    tokens[i] = static_cast<std::int32_t>(static_cast<std::make_unsigned_t<T>>(value));
  }
  return tokens;
}

struct ElementType {
  std::string_view name;
  MdsType type;
  std::vector<std::int32_t> (*tokens)(std::span<const std::byte> values, const std::string& origin) = nullptr;
};
constexpr ElementType kTypes[] = {{"uint8", MdsType::u8, narrow<std::uint8_t>},
                                  {"int8", MdsType::i8, narrow<std::int8_t>},
                                  {"uint16", MdsType::u16, narrow<std::uint16_t>},
                                  {"int16", MdsType::i16, narrow<std::int16_t>},
                                  {"float16", MdsType::f16},
                                  {"uint32", MdsType::u32, narrow<std::uint32_t>},
                                  {"int32", MdsType::i32, narrow<std::int32_t>},
                                  {"float32", MdsType::f32},
                                  {"uint64", MdsType::u64, narrow<std::uint64_t>},
                                  {"int64", MdsType::i64, narrow<std::int64_t>},
                                  {"float64", MdsType::f64}};

/// Variable-size encodings other than ndarray and pkl; JPEG may be followed by ":quality".
constexpr std::array<std::string_view, 14> kVariable = {
    "bytes", "str", "str_int",    "str_float",  "str_decimal", "json",      "pil",
    "jpeg",  "png", "jpeg_array", "list[jpeg]", "list[png]",   "list[pil]", "jpegarray"};

/// Type bytes are multiples of the width in bits, plus 0, 1 or 2 for unsigned, signed and floating.
constexpr std::uint64_t width_of(MdsType type) { return static_cast<std::uint64_t>(type) / 8; }

std::optional<MdsType> type_named(std::string_view word) {
  const auto* const found = std::ranges::find(kTypes, word, &ElementType::name);
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->type);
}

[[noreturn]] void reject(const std::string& word, const std::string& origin) {
  throw_usage(
      "{}: column_encodings: found '{}', allowed are bytes, str, int, int8..int64, uint8..uint64, float16..float64, "
      "str_int, str_float, str_decimal, json, pil, jpeg, png and ndarray[:type[:shape]]; write the dataset with one of "
      "these",
      origin, word);
}

/// The number of elements of "2,3".
std::optional<std::uint64_t> elements_of(std::string_view shape) {
  std::uint64_t elements = 1;
  while (true) {
    std::uint64_t dim = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), dim);
    if (error != std::errc() || dim == 0 || dim > std::numeric_limits<std::uint32_t>::max() / elements)
      return std::nullopt;
    elements *= dim;
    shape.remove_prefix(static_cast<std::size_t>(end - shape.data()));
    if (shape.empty()) return elements;
    if (shape.front() != ',') return std::nullopt;
    shape.remove_prefix(1);
  }
}

MdsEncoding ndarray_encoding(const std::string& word, const std::string& origin) {
  MdsEncoding encoding{word, {}, {}, {}, true};
  std::string_view rest = std::string_view(word).substr(std::string_view("ndarray").size());
  if (rest.empty()) return encoding;
  rest.remove_prefix(1);
  const auto colon = rest.find(':');
  encoding.type = type_named(rest.substr(0, colon));
  if (!encoding.type) reject(word, origin);
  if (colon == std::string_view::npos) return encoding;
  encoding.elements = elements_of(rest.substr(colon + 1));
  const std::uint64_t most = std::numeric_limits<std::uint32_t>::max() / width_of(*encoding.type);
  if (!encoding.elements || *encoding.elements > most) reject(word, origin);
  encoding.size = static_cast<std::uint32_t>(*encoding.elements * width_of(*encoding.type));
  return encoding;
}

[[noreturn]] void bad_payload(const std::string& origin, const MdsEncoding& encoding, std::size_t size,
                              const char* why) {
  throw_usage("{}: found {} bytes that are no {}: {}; allowed is what its encoding says; fetch or pack the shard again",
              origin, size, encoding.name, why);
}

template <typename T>
std::string encode_tokens(std::span<const T> tokens) {
  if (tokens.empty() || tokens.size() > std::numeric_limits<std::uint32_t>::max())
    throw_usage("MDS sample: found {} tokens, allowed are 1 to 2^32 - 1; cut the text into such samples",
                tokens.size());
  const auto count = static_cast<std::uint32_t>(tokens.size());
  const int log_width = count < 256 ? 0 : count < 65536 ? 1 : 2;  // the smallest type for the single dimension
  std::string payload(1, static_cast<char>((1 << 2) | log_width));
  payload.append(reinterpret_cast<const char*>(&count), std::size_t{1} << log_width);
  payload.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  return payload;
}

}  // namespace

MdsEncoding mds_encoding_from_string(const std::string& word, const std::string& origin) {
  if (word == "pkl")
    throw_usage(
        "{}: column_encodings: found 'pkl', allowed are encodings that run no code when read; write the column as "
        "ndarray, json or bytes",
        origin);
  if (word == "ndarray" || word.starts_with("ndarray:")) return ndarray_encoding(word, origin);
  if (word == "int") return {word, 8, {}, {}, false};
  if (const auto type = type_named(word)) return {word, static_cast<std::uint32_t>(width_of(*type)), {}, {}, false};
  const std::string_view first = std::string_view(word).substr(0, word.starts_with("jpeg:") ? 4 : word.size());
  if (std::ranges::find(kVariable, first) == kVariable.end()) reject(word, origin);
  return {word, {}, {}, {}, false};
}

std::string encode_mds_tokens(std::span<const std::uint16_t> tokens) { return encode_tokens(tokens); }
std::string encode_mds_tokens(std::span<const std::int32_t> tokens) { return encode_tokens(tokens); }

bool holds_tokens(const MdsEncoding& encoding) {
  if (!encoding.is_ndarray) return encoding.name == "bytes";
  return !encoding.type || std::ranges::find(kTypes, *encoding.type, &ElementType::type)->tokens != nullptr;
}

std::vector<std::int32_t> decode_mds_tokens(const MdsEncoding& encoding, std::span<const std::byte> payload,
                                            const std::string& origin) {
  const std::size_t size = payload.size();
  MdsType type = MdsType::i64;  // for legacy "bytes"
  std::uint64_t elements = size / width_of(type);
  if (encoding.is_ndarray) {
    if (encoding.type) {
      type = *encoding.type;
    } else {
      if (payload.empty()) bad_payload(origin, encoding, size, "there is no type byte");
      type = static_cast<MdsType>(payload[0]);
      payload = payload.subspan(1);
    }
    if (encoding.elements) {
      elements = *encoding.elements;
    } else {
      if (payload.empty()) bad_payload(origin, encoding, size, "there is no shape byte");
      const auto byte = static_cast<unsigned>(payload[0]);
      const std::size_t dims = byte >> 2;
      const std::size_t width = std::size_t{1} << (byte & 3);
      if (dims == 0 || payload.size() < 1 + dims * width) bad_payload(origin, encoding, size, "the shape is cut off");
      elements = 1;
      for (std::size_t i = 0; i < dims; ++i) {
        std::uint64_t dim = 0;
        std::memcpy(&dim, payload.data() + 1 + i * width, width);
        if (dim == 0 || dim > size || (elements *= dim) > size)
          bad_payload(origin, encoding, size, "the shape is not that long");
      }
      payload = payload.subspan(1 + dims * width);
    }
  }
  const auto* const known = std::ranges::find(kTypes, type, &ElementType::type);
  if (known == std::end(kTypes)) bad_payload(origin, encoding, size, "the type byte is unknown");
  if (elements * width_of(type) != payload.size()) bad_payload(origin, encoding, size, "length and shape disagree");
  if (known->tokens == nullptr) bad_payload(origin, encoding, size, "its values are not integers");
  return known->tokens(payload, origin);
}

}  // namespace wt
