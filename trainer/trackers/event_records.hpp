// TensorBoard's event files: records in TensorFlow's TFRecord format, each with an Event in protobuf's wire format.
// Sources: tensorflow/core/util/event.proto, lib/io/record_writer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace wt {

/// CRC-32C, rotated and shifted, so that records may contain records.
std::uint32_t masked_crc32c(std::string_view bytes);
/// Length, its checksum, the bytes, their checksum; numbers are little-endian.
std::string event_record(std::string_view event);

/// Events at time `unix_s`.
std::string version_event(double unix_s);  ///< must be the first event of a file
/// Invalidates the values of earlier files from `step` on: readers drop them.
std::string restart_event(double unix_s, std::int64_t step);
std::string scalar_event(double unix_s, std::int64_t step, std::string_view tag, double value);  ///< stored as a float
/// Markdown for the page of texts.
std::string text_event(double unix_s, std::int64_t step, std::string_view tag, std::string_view text);

}  // namespace wt
