// TensorBoard's event files: records of TensorFlow's TFRecord format, each an Event in protobuf's wire format. Facts:
// tensorflow/core/util/event.proto, lib/io/record_writer.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace wt {

/// CRC-32C, rotated and shifted so that a record may hold records.
std::uint32_t masked_crc32c(std::string_view bytes);
/// Length, its checksum, the bytes, their checksum; numbers are little-endian.
std::string event_record(std::string_view event);

/// Events; `unix_s` is when.
std::string version_event(double unix_s);  ///< the first of a file
/// From `step` on, what files before this one hold is not valid any more: readers leave it out.
std::string restart_event(double unix_s, std::int64_t step);
std::string scalar_event(double unix_s, std::int64_t step, std::string_view tag, double value);  ///< kept as a float
/// Markdown for the page of texts.
std::string text_event(double unix_s, std::int64_t step, std::string_view tag, std::string_view text);

}  // namespace wt
