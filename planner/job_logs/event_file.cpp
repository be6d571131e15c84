#include "planner/job_logs/event_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "planner/job_logs/protobuf.hpp"
#include "trainer/trackers/event_records.hpp"

namespace wt {
namespace {

constexpr std::uint64_t kMostOfRecord = std::uint64_t{64} << 20;
constexpr std::size_t kHead = 12, kTail = 4;  // a length with its checksum, the checksum of the bytes

/// The length, if its checksum is right.
std::optional<std::uint64_t> length_of(std::string_view head) {
  if (masked_crc32c(head.substr(0, 8)) != little_endian(head.substr(8, 4))) return std::nullopt;
  return little_endian(head.substr(0, 8));
}

/// TensorProto: dtype 1, float_val 5, double_val 6, tensor_content 4; packed or one by one. More than one value is no
/// scalar.
std::optional<double> scalar_of_tensor(std::string_view tensor) {
  constexpr std::uint64_t kFloat = 1, kDouble = 2;  // DataType
  const auto fields = protobuf_fields(tensor);
  if (!fields) return std::nullopt;
  std::uint64_t type = 0;
  std::string_view value;
  for (const ProtobufField& f : *fields) {
    if (f.number == 1) type = f.value;
    if (f.number >= 4 && f.number <= 6) value = f.bytes;
  }
  if (type == kFloat && value.size() == 4)
    return std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(value)));
  if (type == kDouble && value.size() == 8) return std::bit_cast<double>(little_endian(value));
  return std::nullopt;
}

/// Summary.Value: tag 1, simple_value 2, tensor 8.
void take_value(nlohmann::json& row, std::string_view value) {
  const auto fields = protobuf_fields(value);
  if (!fields) return;
  std::string tag;
  std::optional<double> scalar;
  for (const ProtobufField& f : *fields) {
    if (f.number == 1) tag = f.bytes;
    if (f.number == 2 && f.bytes.size() == 4) scalar = f.as_float();
    if (f.number == 8) scalar = scalar_of_tensor(f.bytes);
  }
  if (scalar) row[tag] = std::isfinite(*scalar) ? nlohmann::json(*scalar) : nlohmann::json();
}

/// Event: wall_time 1, step 2, summary 5 with values 1.
struct Event {
  std::int64_t step = 0;
  nlohmann::json scalars = nlohmann::json::object();
  double unix_s = std::numeric_limits<double>::quiet_NaN();
};

std::optional<Event> event_of(std::string_view bytes) {
  const auto fields = protobuf_fields(bytes);
  if (!fields) return std::nullopt;
  Event out;
  for (const ProtobufField& f : *fields) {
    if (f.number == 1 && f.bytes.size() == 8) out.unix_s = f.as_double();
    if (f.number == 2) out.step = static_cast<std::int64_t>(f.value);
    if (f.number != 5) continue;
    const auto values = protobuf_fields(f.bytes);
    if (!values) return std::nullopt;
    for (const ProtobufField& value : *values)
      if (value.number == 1) take_value(out.scalars, value.bytes);
  }
  return out;
}

/// Events that follow one another, of one step and of other tags, are one row.
class Rows {
 public:
  Rows(MetricRecords& out, MetricSteps& metrics, const std::string& origin)
      : out_(out), metrics_(metrics), origin_(origin) {}

  void add(const Event& event, std::int64_t record) {
    for (const auto& [tag, value] : event.scalars.items()) {
      if (!MetricSteps::knows(tag)) continue;
      if (!row_.empty() && (row_["step"] != event.step || row_.contains(tag))) end();
      if (row_.empty()) {
        first_ = record, row_["step"] = event.step;
        if (std::isfinite(event.unix_s)) row_["_timestamp"] = event.unix_s;
      }
      row_[tag] = value;
    }
  }

  void end() {
    if (row_.empty()) return;
    if (const auto step = metrics_.row(row_, fmt::format("{}: record {}", origin_, first_)))
      out_.steps.emplace_back(first_, *step);
    row_.clear();
  }

 private:
  MetricRecords& out_;
  MetricSteps& metrics_;
  const std::string& origin_;
  nlohmann::json row_ = nlohmann::json::object();
  std::int64_t first_ = 0;  ///< record of the row
};

}  // namespace

bool is_event_file(std::string_view begin) { return begin.size() >= kHead && length_of(begin).has_value(); }

MetricRecords event_file_steps(std::string_view bytes, const std::string& origin, MetricSteps& metrics) {
  MetricRecords out;
  Rows rows(out, metrics, origin);
  for (std::int64_t record = 1; !bytes.empty(); ++record) {
    const auto fail = [&](const char* what) {
      throw_usage("{}: record {}: found {}; needs what TensorBoard's writers write, undamaged", origin, record, what);
    };
    const auto length = bytes.size() < kHead ? std::nullopt : length_of(bytes.substr(0, kHead));
    if (bytes.size() >= kHead && !length) fail("another checksum than that of its length");
    if (length.value_or(0) > kMostOfRecord) fail("a record of more than 64 MiB");
    if (!length || *length > bytes.size() - kHead || bytes.size() - kHead - *length < kTail) {
      out.cut = true;
      break;
    }
    const std::string_view event = bytes.substr(kHead, *length);
    if (masked_crc32c(event) != little_endian(bytes.substr(kHead + *length, kTail)))
      fail("another checksum than that of its bytes");
    const auto read = event_of(event);
    if (!read) fail("no event");
    rows.add(*read, record);
    bytes.remove_prefix(kHead + *length + kTail);
  }
  rows.end();
  return out;
}

}  // namespace wt
