#include "reports/render/memory_snapshot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "reports/render/program_words.hpp"

namespace wt {
namespace {

/// Writes the few kinds of values that a snapshot has, as a pickle of protocol 2
/// (docs.python.org/3/library/pickletools).
class Pickle {
 public:
  Pickle() { out_ = "\x80\x02"; }
  void open_dict() { out_ += "}("; }
  void close_dict() { out_ += 'u'; }
  void open_list() { out_ += ']'; }
  /// An item of the list, between these two. Viewers read items one by one, whatever their number.
  void append() { out_ += 'a'; }
  void text(const std::string& text) {
    out_ += 'X';
    bytes(text.size(), 4);
    out_ += text;
  }
  void number(std::uint64_t value) {
    out_ += "\x8a\x08";
    bytes(value, 8);
  }
  std::string finished() { return out_ + '.'; }

 private:
  void bytes(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) out_ += static_cast<char>(value >> 8 * i & 0xff);
  }
  std::string out_;
};

/// Gives every block the lowest free addresses.
class Addresses {
 public:
  std::uint64_t allocate(std::size_t block, std::uint64_t size) {
    std::uint64_t at = 0;
    for (const auto& [begin, end] : taken_) {
      if (begin - at >= size) break;
      at = end;
    }
    taken_.emplace(at, at + size);
    of_[block] = at;
    end_ = std::max(end_, at + size);
    return at;
  }
  std::uint64_t free(std::size_t block) {
    const std::uint64_t at = of_.at(block);
    taken_.erase(at);
    return at;
  }
  std::uint64_t end() const { return end_; }

 private:
  std::map<std::uint64_t, std::uint64_t> taken_;  ///< ends by begin
  std::unordered_map<std::size_t, std::uint64_t> of_;
  std::uint64_t end_ = 0;
};

void put_frames(Pickle& out, const std::string& buffer, int layer, const std::string& op) {
  out.text("frames");
  out.open_list();
  out.open_dict();
  out.text("filename"), out.text(buffer_words(buffer).text);
  out.text("line"), out.number(static_cast<std::uint64_t>(std::max(0, layer)));
  out.text("name"), out.text(op);
  out.close_dict();
  out.append();
}

}  // namespace

std::string memory_snapshot(const Program& program, const MemoryReplay& replay) {
  const std::vector<OpInstance> ops = unroll(program);
  Addresses addresses;
  Pickle out;
  out.open_dict();
  out.text("device_traces");
  out.open_list();
  out.open_list();  // of the one device
  for (const MemoryEvent& event : replay.events) {
    const auto size = static_cast<std::uint64_t>(std::llround(std::abs(event.bytes)));
    if (size == 0) continue;
    const bool allocated = event.bytes > 0;
    const OpInstance* op = event.op < 0 ? nullptr : &ops[static_cast<std::size_t>(event.op)];
    out.open_dict();
    out.text("action"), out.text(allocated ? "alloc" : "free_completed");
    out.text("addr"), out.number(allocated ? addresses.allocate(event.block, size) : addresses.free(event.block));
    out.text("size"), out.number(size);
    out.text("stream"), out.number(0);
    put_frames(out, event.buffer, op ? op->layer : 0, op ? op->id() : "throughout the step");
    out.close_dict();
    out.append();
  }
  out.append();
  out.text("segments");
  out.open_list();
  out.open_dict();
  out.text("device"), out.number(0);
  out.text("address"), out.number(0);
  out.text("total_size"), out.number(addresses.end());
  out.text("stream"), out.number(0);
  out.text("segment_type"), out.text("large");
  out.text("blocks"), out.open_list();
  out.close_dict();
  out.append();
  out.close_dict();
  return out.finished();
}

}  // namespace wt
