#include "lanes.hpp"

#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace lanes {
namespace {

const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Part of a range on a page that holds other things, too, and what is there when the collective is done.
struct Edge {
  char* begin = nullptr;
  std::string bytes;
  bool written = false;
};

struct UnderWay {
  int stream = 0;
  std::int64_t tick = 0;  ///< of its stream
  std::vector<Range> ranges;
  std::string what;
  std::vector<Edge> edges;
  bool left_out = false;  ///< a wait for it was
};

struct Protected {
  int reads = 0, writes = 0;  ///< collectives under way that do so
  int protection() const { return writes > 0 ? PROT_NONE : reads > 0 ? PROT_READ : PROT_READ | PROT_WRITE; }
};

/// All of it is one process's; threads of its computation touch memory and nothing else of this.
struct State {
  std::recursive_mutex mutex;
  std::vector<Clock> clocks{{1}};
  int current = 0;
  std::vector<UnderWay> under_way;
  UnderWay next;  ///< between begins() and began()
  std::map<const char*, std::size_t> taken;
  std::map<const char*, Protected> pages;
  Blocks blocks;
  Blocks dropped{-1, -1};
};

State& state() {
  static State* const all = new State;  // outlives what is destroyed at the end of the process
  return *all;
}

[[noreturn]] void race(const std::string& how) {
  const std::string line = "lanes: " + how + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(kRace + 1);
  void* frames[48];
  backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
  _exit(kRace);
}

bool overlap(const Range& a, const Range& b) { return a.begin < b.begin + b.bytes && b.begin < a.begin + a.bytes; }

const UnderWay* toucher(const char* at) {
  for (const UnderWay& one : state().under_way)
    for (const Range& range : one.ranges)
      if (at >= range.begin && at < range.begin + range.bytes) return &one;
  return nullptr;
}

void on_fault(int signal, siginfo_t* info, void*) {
  const auto* const at = static_cast<const char*>(info->si_addr);
  const char* const page = at - reinterpret_cast<std::uintptr_t>(at) % kPage;
  if (!state().pages.contains(page)) {
    ::signal(signal, SIG_DFL);  // another fault: it comes again
    return;
  }
  const UnderWay* one = toucher(at);
  race("computation touches memory of " + (one ? one->what : "a collective") + " before it waited for it");
}

void set_protection(const char* begin, std::size_t bytes, int protection) {
  if (mprotect(const_cast<char*>(begin), bytes, protection) != 0)
    race("memory cannot be protected (vm.max_map_count?)");
}

/// Whole pages inside of a range; the last one, too, where nothing else is behind it in what was taken.
std::pair<const char*, const char*> pages_of(const Range& range) {
  const State& all = state();
  auto at = all.taken.upper_bound(range.begin);
  if (range.bytes == 0 || at == all.taken.begin()) return {nullptr, nullptr};
  --at;
  const char *const begin = at->first, *const end = begin + at->second;
  if (range.begin >= end) return {nullptr, nullptr};  // not of these pages
  const auto up = [&](std::size_t offset) { return (offset + kPage - 1) / kPage * kPage; };
  const std::size_t first = up(static_cast<std::size_t>(range.begin - begin));
  const std::size_t last = static_cast<std::size_t>(range.begin - begin) + range.bytes;
  return {begin + first, begin + (last == at->second ? up(last) : last / kPage * kPage)};
}

void protect(const UnderWay& one, int change) {
  for (const Range& range : one.ranges) {
    const auto [first, last] = pages_of(range);
    for (const char* page = first; page < last; page += kPage) {
      Protected& of_page = state().pages[page];
      const int before = of_page.protection();
      (range.written ? of_page.writes : of_page.reads) += change;
      if (of_page.protection() != before) set_protection(page, kPage, of_page.protection());
      if (of_page.reads == 0 && of_page.writes == 0) state().pages.erase(page);
    }
  }
}

constexpr char kPoison = 0x7F;  ///< large as any kind of number

/// What pages cannot protect: what it reads is kept to be compared, what it writes is taken away until it was waited
/// for.
void hide_edges(UnderWay& one) {
  for (const Range& range : one.ranges) {
    const auto [first, last] = pages_of(range);
    const char *const begin = range.begin, *const end = range.begin + range.bytes;
    const auto add = [&](const char* from, const char* to) {
      if (from < to) one.edges.push_back({const_cast<char*>(from), std::string(from, to), range.written});
    };
    if (first >= last) {
      add(begin, end);
    } else {
      add(begin, first), add(last, end);
    }
  }
  for (const Edge& edge : one.edges)
    if (edge.written) std::memset(edge.begin, kPoison, edge.bytes.size());
}

void show_edges(UnderWay& one) {
  for (const bool written : {true, false})
    for (const Edge& edge : one.edges) {
      if (edge.written != written) continue;
      const std::string expected = written ? std::string(edge.bytes.size(), kPoison) : edge.bytes;
      if (std::memcmp(edge.begin, expected.data(), expected.size()) != 0)
        race("computation writes memory of " + one.what + " before it waited for it");
      if (written) std::memcpy(edge.begin, edge.bytes.data(), edge.bytes.size());
    }
  one.edges.clear();
}

void unprotect_ranges(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    const auto [first, last] = pages_of(range);
    if (first < last) set_protection(first, static_cast<std::size_t>(last - first), PROT_READ | PROT_WRITE);
  }
}

void protect_again(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    const auto [first, last] = pages_of(range);
    for (const char* page = first; page < last; page += kPage)
      if (const auto at = state().pages.find(page); at != state().pages.end())
        set_protection(page, kPage, at->second.protection());
  }
}

void install() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
  if (const char* drop = std::getenv("WT_LANES_DROP")) {
    std::sscanf(drop, "wait %ld", &state().dropped.waits);
    std::sscanf(drop, "ready %ld", &state().dropped.readies);
  }
}

void join(Clock& into, const Clock& other) {
  into.resize(std::max(into.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

std::int64_t knows(const Clock& clock, int of) {
  return static_cast<std::size_t>(of) < clock.size() ? clock[static_cast<std::size_t>(of)] : 0;
}
std::int64_t knows(int stream, int of) { return knows(state().clocks[static_cast<std::size_t>(stream)], of); }

/// The stream of computation does not wait for that.
void leave_out(const Clock& event) {
  bool covered = true;
  for (UnderWay& one : state().under_way)
    if (knows(event, one.stream) >= one.tick) one.left_out = true, covered = false;
  if (covered) std::fprintf(stderr, "lanes: an earlier wait covers all of it\n");
}

/// Computation may follow what is known of it so far.
void compute_goes_on() { ++state().clocks[0][0]; }

}  // namespace

int new_stream() {
  State& all = state();
  const std::scoped_lock lock(all.mutex);
  if (all.clocks.size() == 1) install();
  const int made = static_cast<int>(all.clocks.size());
  all.clocks.emplace_back(static_cast<std::size_t>(made) + 1);
  return made;
}

int current_stream() { return state().current; }
void set_current_stream(int stream) { state().current = stream; }

Clock record() {
  State& all = state();
  const std::scoped_lock lock(all.mutex);
  return all.clocks[static_cast<std::size_t>(all.current)];
}

void block(const Clock& event, int stream) {
  State& all = state();
  const std::scoped_lock lock(all.mutex);
  if (stream != 0) {
    if (all.blocks.readies++ != all.dropped.readies) join(all.clocks[static_cast<std::size_t>(stream)], event);
    return;
  }
  if (all.blocks.waits++ != all.dropped.waits)
    join(all.clocks[0], event);
  else
    leave_out(event);
  compute_goes_on();
  const auto waited_for = [](const UnderWay& one) { return knows(0, one.stream) >= one.tick; };
  for (UnderWay& one : all.under_way) {
    if (!waited_for(one)) continue;
    protect(one, -1);
    if (one.left_out) std::fprintf(stderr, "lanes: a later wait covers %s\n", one.what.c_str());
  }
  for (auto one = all.under_way.rbegin(); one != all.under_way.rend(); ++one)  // the newest hid what older ones wrote
    if (waited_for(*one)) show_edges(*one);
  std::erase_if(all.under_way, waited_for);
}

void begins(int stream, const std::vector<Range>& ranges, const std::string& what) {
  State& all = state();
  const std::scoped_lock lock(all.mutex);
  if (knows(stream, 0) != all.clocks[0][0]) race(what + " does not wait for the computation before it");
  for (UnderWay& other : all.under_way)
    for (const Range& theirs : other.ranges)
      for (const Range& ours : ranges) {
        if (!(ours.written || theirs.written) || !overlap(ours, theirs)) continue;
        if (knows(stream, other.stream) < other.tick)
          race(what + " and " + other.what + " are on the same memory at once");
        show_edges(other);
      }
  const auto lane = static_cast<std::size_t>(stream);
  all.next = {stream, ++all.clocks[lane][lane], ranges, what, {}, false};
  unprotect_ranges(ranges);
}

void began() {
  State& all = state();
  const std::scoped_lock lock(all.mutex);
  hide_edges(all.next);
  protect_again(all.next.ranges);
  protect(all.next, 1);
  all.under_way.push_back(std::move(all.next));
  compute_goes_on();
}

char* take_pages(std::size_t bytes) {
  State& all = state();
  void* const begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  const std::scoped_lock lock(all.mutex);
  all.taken[static_cast<char*>(begin)] = bytes;
  return static_cast<char*>(begin);
}

void give_back_pages(char* begin) {
  State& all = state();
  const std::scoped_lock lock(all.mutex);
  const auto at = all.taken.find(begin);
  for (const UnderWay& one : all.under_way)
    for (const Range& range : one.ranges)
      if (overlap(range, {begin, at->second}))
        race("memory of " + one.what + " is given back before it was waited for");
  munmap(begin, at->second);
  all.taken.erase(at);
}

Blocks blocks() { return state().blocks; }

}  // namespace lanes
