#include "trainer/trackers/event_records.hpp"

#include <bit>
#include <boost/crc.hpp>

namespace wt {
namespace {

template <class Number>
std::string little_endian(Number value) {
  std::string out;
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

/// Wire types of fields: 0 a varint, 1 eight bytes, 2 a length and that many bytes, 5 four bytes.
std::string tag_of(std::uint64_t field, std::uint64_t kind) { return varint(field << 3 | kind); }
std::string whole_field(std::uint64_t field, std::int64_t value) {
  return tag_of(field, 0) + varint(static_cast<std::uint64_t>(value));
}
std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return tag_of(field, 2) + varint(bytes.size()) + std::string(bytes);
}
std::string double_field(std::uint64_t field, double value) {
  return tag_of(field, 1) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string float_field(std::uint64_t field, float value) {
  return tag_of(field, 5) + little_endian(std::bit_cast<std::uint32_t>(value));
}

std::string event_at(double unix_s, std::int64_t step) { return double_field(1, unix_s) + whole_field(2, step); }
std::string summary_of(std::string_view tag, const std::string& value) {
  return bytes_field(5, bytes_field(1, bytes_field(1, tag) + value));
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return std::rotr(static_cast<std::uint32_t>(sum.checksum()), 15) + 0xa282ead8u;
}

std::string event_record(std::string_view event) {
  const std::string length = little_endian(static_cast<std::uint64_t>(event.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(event) + little_endian(masked_crc32c(event));
}

std::string version_event(double unix_s) { return double_field(1, unix_s) + bytes_field(3, "brain.Event:2"); }

std::string restart_event(double unix_s, std::int64_t step) {
  constexpr std::int64_t kStart = 1;  // SessionLog.SessionStatus
  return event_at(unix_s, step) + bytes_field(7, whole_field(1, kStart));
}

std::string scalar_event(double unix_s, std::int64_t step, std::string_view tag, double value) {
  return event_at(unix_s, step) + summary_of(tag, float_field(2, static_cast<float>(value)));
}

std::string text_event(double unix_s, std::int64_t step, std::string_view tag, std::string_view text) {
  constexpr std::int64_t kString = 7;  // DataType
  const std::string tensor =
      whole_field(1, kString) + bytes_field(2, bytes_field(2, whole_field(1, 1))) + bytes_field(8, text);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));
  return event_at(unix_s, step) + summary_of(tag, bytes_field(8, tensor) + bytes_field(9, metadata));
}

}  // namespace wt
