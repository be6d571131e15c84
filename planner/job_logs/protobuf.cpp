#include "planner/job_logs/protobuf.hpp"

namespace wt {
namespace {

constexpr std::size_t kMostFields = 1'000'000;

/// Takes it from the front. At most ten bytes.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t out = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return out;
  }
  return std::nullopt;
}

/// How many bytes a field of this wire type has, the varint of a length taken. None: it is broken.
std::optional<std::uint64_t> size_of(std::uint64_t wire_type, std::string_view& bytes) {
  constexpr std::uint64_t kFixed64 = 1, kBytes = 2, kFixed32 = 5;
  if (wire_type == kBytes) return take_varint(bytes);
  if (wire_type == kFixed64) return 8;
  if (wire_type == kFixed32) return 4;
  return std::nullopt;
}

}  // namespace

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 8; ++i)
    out |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return out;
}

std::optional<std::vector<ProtobufField>> protobuf_fields(std::string_view message) {
  std::vector<ProtobufField> out;
  while (!message.empty()) {
    const auto tag = take_varint(message);
    if (!tag || *tag < 8) return std::nullopt;  // fields count from 1
    ProtobufField field{.number = *tag >> 3};
    if ((*tag & 7) == 0) {
      const auto value = take_varint(message);
      if (!value) return std::nullopt;
      field.value = *value;
    } else {
      const auto size = size_of(*tag & 7, message);
      if (!size || *size > message.size()) return std::nullopt;
      field.bytes = message.substr(0, *size);
      if ((*tag & 7) != 2) field.value = little_endian(field.bytes);
      message.remove_prefix(*size);
    }
    if (out.size() == kMostFields) return std::nullopt;
    out.push_back(field);
  }
  return out;
}

}  // namespace wt
