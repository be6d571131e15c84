#include "planner/job_logs/wandb_run.hpp"

#include <fmt/format.h>

#include <boost/crc.hpp>
#include <nlohmann/json.hpp>

#include "configs/base/error.hpp"
#include "planner/job_logs/protobuf.hpp"

namespace wt {
namespace {

constexpr std::string_view kHeader{":W&B\xe1\xbe\0", 7};  // four letters, a magic number, version 0
constexpr std::size_t kBlock = 32768, kPieceHead = 7, kMostRecord = std::size_t{64} << 20;
enum class Piece : std::uint8_t { whole = 1, first = 2, middle = 3, last = 4 };

/// Takes records out of the blocks.
class LevelDbLog {
 public:
  /// `bytes`: the whole file, because blocks count from its beginning.
  LevelDbLog(std::string_view bytes, const std::string& origin) : bytes_(bytes), at_(kHeader.size()), origin_(origin) {}

  /// The next record; none at the end, and where the file is cut.
  std::optional<std::string> next() {
    std::string out;
    for (bool begun = false; skip_padding(), at_ < bytes_.size(); begun = true) {
      if (bytes_.size() - at_ < kPieceHead) break;
      const std::string_view head = bytes_.substr(at_, kPieceHead);
      const std::size_t length = little_endian(head.substr(4, 2));
      const auto kind = static_cast<Piece>(head[6]);
      if (bytes_.size() - at_ - kPieceHead < length) break;
      check(head, bytes_.substr(at_ + kPieceHead, length));
      const bool ends = kind == Piece::whole || kind == Piece::last;
      if (kind < Piece::whole || kind > Piece::last || begun != (kind == Piece::middle || kind == Piece::last))
        fail("a piece of a record where another one was expected");
      out += bytes_.substr(at_ + kPieceHead, length);
      if (out.size() > kMostRecord) fail("a record above 64 MiB");
      at_ += kPieceHead + length;
      if (ends) return out;
    }
    cut_ = !out.empty() || at_ < bytes_.size();
    return std::nullopt;
  }

  bool cut() const { return cut_; }

 private:
  /// A piece's head never crosses the end of a block.
  void skip_padding() {
    if (const std::size_t left = kBlock - at_ % kBlock; left < kPieceHead) at_ += left;
  }

  void check(std::string_view head, std::string_view piece) const {
    boost::crc_32_type sum;  // zlib's, where LevelDB has CRC-32C
    sum.process_bytes(head.data() + 6, 1);
    sum.process_bytes(piece.data(), piece.size());
    if (sum.checksum() != little_endian(head.substr(0, 4))) fail("another checksum than that of its bytes");
  }

  [[noreturn]] void fail(const char* what) const {
    throw_usage("{}: byte {}: found {}; needs a file without damage", origin_, at_, what);
  }

  std::string_view bytes_;
  std::size_t at_;
  const std::string& origin_;
  bool cut_ = false;
};

/// HistoryItem: key 1, nested_key 2, value_json 16. A key of several parts is written with points, as in W&B's tables.
void take_item(nlohmann::json& row, std::string_view item) {
  constexpr std::size_t kLongest = 100;  // a number as text; images and tables are longer
  const auto fields = protobuf_fields(item);
  if (!fields) return;
  std::string key;
  std::string_view value;
  for (const ProtobufField& f : *fields) {
    if (f.number == 1) key = f.bytes;
    if (f.number == 2) key += (key.empty() ? "" : ".") + std::string(f.bytes);
    if (f.number == 16) value = f.bytes;
  }
  if (value.size() > kLongest) return;
  const nlohmann::json number = python_json(std::string(value));
  if (number.is_number() || number.is_null()) row[key] = number;
}

/// Record: history 2. HistoryRecord: items 1, step 2 with its number 1. None: another record.
std::optional<nlohmann::json> history_of(std::string_view record) {
  const auto fields = protobuf_fields(record);
  if (!fields) return std::nullopt;
  for (const ProtobufField& f : *fields) {
    if (f.number != 2) continue;
    const auto parts = protobuf_fields(f.bytes);
    if (!parts) return std::nullopt;
    nlohmann::json row = nlohmann::json::object();
    for (const ProtobufField& part : *parts) {
      if (part.number == 1) take_item(row, part.bytes);
      const auto step = part.number == 2 ? protobuf_fields(part.bytes) : std::nullopt;
      if (step && !row.contains("_step"))
        row["_step"] = step->empty() ? 0 : static_cast<std::int64_t>((*step)[0].value);
    }
    return row;
  }
  return std::nullopt;
}

}  // namespace

bool is_wandb_run(std::string_view begin) { return begin.starts_with(kHeader); }

MetricRecords wandb_run_steps(std::string_view bytes, const std::string& origin, MetricSteps& metrics) {
  MetricRecords out;
  LevelDbLog log(bytes, origin);
  std::int64_t number = 0;
  while (const auto record = log.next()) {
    ++number;
    if (const auto row = history_of(*record))
      if (const auto step = metrics.row(*row, fmt::format("{}: record {}", origin, number)))
        out.steps.emplace_back(number, *step);
  }
  out.cut = log.cut();
  return out;
}

}  // namespace wt
