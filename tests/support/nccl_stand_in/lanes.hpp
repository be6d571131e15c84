// What runs beside what on a GPU, kept by vector clocks on the host: the stream of computation, and one for every lane
// of collectives. A collective is under way from its call until the stream of computation waits for an event behind it.
// Until then its memory is protected, so that whatever touches it ends the process with a message: writing what it
// reads, and reading or writing what it writes. Where it shares a page with other memory, a write is found when it is
// waited for, and a read finds numbers that are far too large.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lanes {

/// Exit status of a process that broke the order; standard error says how.
inline constexpr int kRace = 86;

struct Range {
  const char* begin = nullptr;
  std::size_t bytes = 0;
  bool written = false;
};
/// By stream: how much of it has happened before.
using Clock = std::vector<std::int64_t>;

/// Stream 0 is that of computation.
int new_stream();
int current_stream();
void set_current_stream(int stream);
/// Everything that was issued on the current stream.
Clock record();
/// `stream` goes on when all of `event` has happened. The environment variable WT_LANES_DROP names one that is
/// forgotten: "wait N" the Nth that the stream of computation makes, "ready N" the Nth of the others; from 0. Where
/// nothing touches that memory before a later wait, or an earlier one was for all of it, standard error says "wait
/// covers".
void block(const Clock& event, int stream);

/// A collective on `stream` is about to move these; what it is called is for messages. Ends the process where it does
/// not come after what was computed before the last collective or wait (later computation is not seen), or where one of
/// another stream is under way on the same memory. The memory may be touched until began() is called.
void begins(int stream, const std::vector<Range>& ranges, const std::string& what);
/// The transfer itself is done; from here on the memory is protected.
void began();

/// Memory that begins with a page, of whole pages, is taken and given back; that of a collective under way ends the
/// process.
char* take_pages(std::size_t bytes);
void give_back_pages(char* begin);

/// So many times the stream of computation has waited, and the others.
struct Blocks {
  std::int64_t waits = 0, readies = 0;
};
Blocks blocks();

}  // namespace lanes
