// Messages in protobuf's wire format, as trackers write them: field by field, without their schema. Source: "Encoding"
// of protobuf's documentation.
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace wt {

struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t value = 0;      ///< of a varint, or of 4 or 8 bytes
  std::string_view bytes = {};  ///< of a string or message; of 4 or 8 bytes, these

  double as_double() const { return std::bit_cast<double>(value); }
  double as_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(value)); }
};

/// None where the bytes are no message, or one of more than a million fields. Groups, which nobody writes any more,
/// count as none.
std::optional<std::vector<ProtobufField>> protobuf_fields(std::string_view message);

/// The bytes as a little-endian number; at most 8.
std::uint64_t little_endian(std::string_view bytes);

}  // namespace wt
