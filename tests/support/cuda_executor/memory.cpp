#include "tests/support/cuda_executor/memory.hpp"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "tests/support/cuda_executor/threads.hpp"

extern "C" char __executable_start, _end;  // the linker's

namespace wt::kernels::cuda {
/// What dynamic_shared() of kernels/cuda/common.cuh declares.
alignas(1024) thread_local unsigned char dynamic_shared_bytes[cuda_executor::kMostSharedBytes];
}  // namespace wt::kernels::cuda

namespace wt::cuda_executor {
namespace {

struct Stamp {
  uint32_t run = 0, clock = 0;  ///< run 0: nobody
  uint32_t thread : 31 = 0, atomic : 1 = 0;
};
constexpr uint32_t kHost = 1;  // a run before all
constexpr size_t kNear = 64;   // bytes beyond an allocation that the message counts from its start

struct Cell {
  Stamp write, reads[2];
};

/// The cells of some memory: one for every unit of it, as large as all accesses so far allow.
class Cells {
 public:
  bool made() const { return cells_ != nullptr; }
  void make(size_t bytes, uint32_t written_by_run) {
    bytes_ = bytes, shift_ = 4;
    Cell fresh;
    fresh.write.run = written_by_run;
    cells_ = static_cast<Cell*>(std::malloc(count() * sizeof(Cell)));
    std::uninitialized_fill_n(cells_, count(), fresh);
  }
  void free() { std::free(cells_); }

  struct Span {
    Cell *first, *last;
    Cell* begin() const { return first; }
    Cell* end() const { return last; }
  };
  Span of(size_t offset, size_t bytes) {
    const size_t end = offset + bytes;
    while (((offset | end) & ((size_t{1} << shift_) - 1)) != 0 &&
           !(end == bytes_ && (offset >> shift_ << shift_) == offset))
      halve_units();
    return {cells_ + (offset >> shift_), cells_ + ((end - 1) >> shift_) + 1};
  }

 private:
  size_t count() const { return ((bytes_ - 1) >> shift_) + 1; }
  void halve_units() {
    Cell* const old = cells_;
    --shift_;
    cells_ = static_cast<Cell*>(std::malloc(count() * sizeof(Cell)));
    for (size_t i = 0; i < count(); ++i) new (cells_ + i) Cell(old[i / 2]);
    std::free(old);
  }

  Cell* cells_ = nullptr;
  size_t bytes_ = 0;
  unsigned shift_ = 0;
};

struct Region {
  size_t bytes;
  bool host_wrote;  ///< what has no cells yet
  bool executors;   ///< taken by the executor itself, while a thread runs: kernels take no memory
  Cells cells;      ///< made when a kernel first touches the region

  Cells& touched() {
    if (!cells.made()) cells.make(bytes, host_wrote ? kHost : 0);
    return cells;
  }
};

/// The registry's own memory is not in the registry.
template <class V>
struct Malloc {
  using value_type = V;
  Malloc() = default;
  template <class W>
  Malloc(const Malloc<W>&) {}
  V* allocate(size_t n) { return static_cast<V*>(std::malloc(n * sizeof(V))); }
  void deallocate(V* p, size_t) { std::free(p); }
  bool operator==(const Malloc&) const { return true; }
};
using Regions = std::map<uintptr_t, Region, std::less<>, Malloc<std::pair<const uintptr_t, Region>>>;

Regions& regions() {  // never destroyed: memory is freed after main()
  alignas(Regions) static unsigned char storage[sizeof(Regions)];
  static Regions* made = new (storage) Regions;
  return *made;
}
/// Regions found lately, by the page of the address.
struct Found {
  uintptr_t start = 0;
  Region* region = nullptr;
};
Found found_lately[64];
Found& lately(uintptr_t at) { return found_lately[at >> 12 & 63]; }

void add_region(void* memory, size_t bytes, bool host_wrote) {
  if (memory) regions()[reinterpret_cast<uintptr_t>(memory)] = {bytes, host_wrote, running != nullptr, {}};
}
bool remove_region(void* memory) {
  const auto at = regions().find(reinterpret_cast<uintptr_t>(memory));
  if (at == regions().end()) return false;
  for (Found& found : found_lately)
    if (found.region == &at->second) found.region = nullptr;
  at->second.cells.free();
  regions().erase(at);
  return true;
}

/// The region that `at` lies in.
Region* region_of(uintptr_t at, uintptr_t* start) {
  Found& found = lately(at);
  if (!found.region || at - found.start >= found.region->bytes) {
    auto next = regions().upper_bound(at);
    if (next == regions().begin() || at - (--next)->first >= next->second.bytes) return nullptr;
    found = {next->first, &next->second};
  }
  *start = found.start;
  return found.region;
}

/// The thread_local memory of the executable, on this thread.
struct Shared {
  uintptr_t start = 0;
  size_t bytes = 0;
  Cells cells;
  Shared() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
          auto& self = *static_cast<Shared*>(data);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
            self.start = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
            self.bytes = info->dlpi_phdr[i].p_memsz;
          }
          return 1;  // the first is the executable
        },
        this);
    cells.make(bytes, 0);
  }
};
Shared shared;

/// Has that access ended before what the running thread does now?
bool ordered(const Stamp& stamp, bool in_shared) {
  if (stamp.run == order.run) return stamp.thread == running->number || stamp.clock <= running->has_seen(stamp.thread);
  return in_shared || stamp.run < order.first_of_launch;
}

const char* did(Access access) {
  return access == Access::read ? "reads" : access == Access::write ? "writes" : "updates";
}

std::string who(const Stamp& stamp) {
  if (stamp.run == order.run) return name_of(thread_of(stamp.thread));
  return fmt::format("thread {} of another block", uint32_t{stamp.thread});
}

struct Touched {
  const char* memory;  ///< shared or device
  size_t offset, bytes;
  Access access;
  const void* code;
  std::string text(const std::string& rest) const {
    return fmt::format("{} {} byte{} at offset {} of {} memory {} (addr2line {:#x})", did(access), bytes,
                       bytes == 1 ? "" : "s", offset, memory, rest,
                       reinterpret_cast<uintptr_t>(code) - 1 - reinterpret_cast<uintptr_t>(&__executable_start));
  }
};

void check_written(const Cell& cell, bool in_shared, const Touched& touched) {
  if (in_shared ? cell.write.run != order.run : cell.write.run == 0) fail(touched.text("that nobody has written"));
}

/// What threads wrote by ordinary stores is for agents to see after a fence alone.
void check_fenced(const Cell& cell, const Touched& touched) {
  if (!running->agent || cell.write.run != order.run || thread_of(cell.write.thread).agent) return;
  const std::vector<uint32_t>& fences = thread_of(cell.write.thread).fences;
  const auto fence = std::lower_bound(fences.begin(), fences.end(), uint32_t{cell.write.clock});
  if (fence == fences.end() || *fence > running->has_seen(cell.write.thread))
    fail(touched.text(
        fmt::format("that {} wrote by ordinary stores with no fence.proxy.async between", who(cell.write))));
}

void read_cell(Cell& cell, const Stamp& mine, bool in_shared, const Touched& touched) {
  check_written(cell, in_shared, touched);
  if (!ordered(cell.write, in_shared))
    fail(touched.text(fmt::format("that {} wrote with nothing between", who(cell.write))));
  if (in_shared) check_fenced(cell, touched);
  for (Stamp& slot : cell.reads)
    if (slot.run == 0 || ordered(slot, in_shared)) {
      slot = mine;
      return;
    }
  cell.reads[mine.clock % 2] = mine;
}

/// False if the write races with another, which is harmless if the value stays the same.
bool write_cell(Cell& cell, const Stamp& mine, bool in_shared, const Touched& touched) {
  for (const Stamp& read : cell.reads)
    if (!ordered(read, in_shared)) fail(touched.text(fmt::format("that {} read with nothing between", who(read))));
  const bool both_atomic = mine.atomic && cell.write.atomic, in_order = both_atomic || ordered(cell.write, in_shared);
  if (!in_order && mine.atomic != cell.write.atomic)
    fail(touched.text(fmt::format("that {} wrote with nothing between", who(cell.write))));
  if (in_shared) check_fenced(cell, touched);
  return in_order;
}

}  // namespace

void settle_doubt(Thread& thread) {
  DoubtfulWrite& doubtful = thread.doubtful;
  if (!doubtful.at) return;
  const bool same = std::memcmp(doubtful.at, doubtful.before.data(), doubtful.before.size()) == 0;
  doubtful.at = nullptr;
  if (!same) fail(doubtful.race);
}

void touch(const void* pointer, size_t bytes, Access access, const void* code) {
  if (!running) return;
  const auto at = reinterpret_cast<uintptr_t>(pointer);
  const auto within = [at](const void* start, size_t size) { return at - reinterpret_cast<uintptr_t>(start) < size; };
  if (within(running->stack, kStackBytes)) {
    if (!within(running->registers, running->register_bytes)) return;
    if (running->registers_in_flight)
      fail(fmt::format("{} register {} while an instruction on its way changes it", did(access),
                       (at - reinterpret_cast<uintptr_t>(running->registers)) / 4));
    running->registers_accessed = true;
    return;
  }
  // threadIdx, constants and parameters
  const bool constant = within(&__executable_start, static_cast<size_t>(&_end - &__executable_start)) ||
                        within(launched->arguments, launched->argument_bytes);
  if (constant && access == Access::read) return;
  settle_doubt(*running);
  Touched touched{"device", 0, bytes, access, code};
  Cells* memory = nullptr;
  uintptr_t start = shared.start;
  const bool in_shared = at - shared.start < shared.bytes;
  if (in_shared) {
    touched.memory = "shared", touched.offset = at - shared.start;
    if (const size_t in_dynamic = at - reinterpret_cast<uintptr_t>(dynamic_shared()); in_dynamic < kMostSharedBytes) {
      touched.memory = "dynamic shared", touched.offset = in_dynamic;
      if (in_dynamic + bytes > launched->shared_bytes)
        fail(touched.text(fmt::format("where the launch has {} bytes", launched->shared_bytes)));
    }
    memory = &shared.cells;
  } else {
    Region* region = region_of(at, &start);
    if (!region) {
      const auto next = regions().upper_bound(at), near = next == regions().begin() ? next : std::prev(next);
      touched.offset = at - near->first;
      fail(touched.text(touched.offset <= near->second.bytes + kNear
                            ? fmt::format("of an allocation of {} bytes", near->second.bytes)
                            : "that was not allocated"));
    }
    if (region->executors) return;
    touched.offset = at - start;
    if (touched.offset + bytes > region->bytes)
      fail(touched.text(fmt::format("of an allocation of {} bytes", region->bytes)));
    // Whoever had this memory last: the launch before may still use it, and a later allocation may be the same bytes.
    if (launched->beside_previous && !running->waited_for_previous)
      fail(touched.text("before it has waited for the launch before"));
    memory = &region->touched();
  }

  const Stamp mine{order.run, running->clock, running->number & 0x7fffffffu, access == Access::atomic};
  running->last_touch = running->clock;
  bool in_order = true;
  for (Cell& cell : memory->of(at - start, bytes)) {
    if (access == Access::read) {
      read_cell(cell, mine, in_shared, touched);
      continue;
    }
    if (access == Access::atomic) check_written(cell, in_shared, touched);
    if (!write_cell(cell, mine, in_shared, touched) && in_order) {
      in_order = false;
      const auto* value = static_cast<const unsigned char*>(pointer);
      running->doubtful = {
          value,
          {value, value + bytes},
          touched.text(fmt::format("that {} wrote another value to with nothing between", who(cell.write)))};
    }
    cell = {mine, {}};
  }
}

void* allocate(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory) std::memset(memory, 0xff, bytes);  // NaN, to who reads it unseen
  add_region(memory, bytes, false);
  return memory;
}

void release_memory(void* memory) {
  if (!memory) return;
  if (!remove_region(memory)) throw Failure("memory is freed that was not allocated");
  std::free(memory);
}

void written_by_host(const void* pointer, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(pointer);
  uintptr_t start = 0;
  Region* region = region_of(at, &start);
  if (bytes == 0) return;
  if (!region || at - start + bytes > region->bytes) throw Failure("the host writes outside of what was allocated");
  for (Cell& cell : region->touched().of(at - start, bytes)) cell = {{kHost, 0, 0, 0}, {}};
}

uint32_t shared_offset(const void* at) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(at) - shared.start); }

unsigned char* dynamic_shared() { return kernels::cuda::dynamic_shared_bytes; }

size_t& shared_limit(const void* kernel) {
  static std::map<const void*, size_t> raised;
  return raised.try_emplace(kernel, size_t{48} << 10).first->second;
}

namespace {
void* allocate_on_heap(size_t bytes) {
  void* memory = std::malloc(bytes ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  add_region(memory, bytes, true);
  return memory;
}
void free_on_heap(void* memory) {
  if (!memory) return;
  remove_region(memory);
  std::free(memory);
}
}  // namespace

}  // namespace wt::cuda_executor

void* operator new(size_t bytes) { return wt::cuda_executor::allocate_on_heap(bytes); }
void* operator new[](size_t bytes) { return wt::cuda_executor::allocate_on_heap(bytes); }
void operator delete(void* memory) noexcept { wt::cuda_executor::free_on_heap(memory); }
void operator delete[](void* memory) noexcept { wt::cuda_executor::free_on_heap(memory); }
void operator delete(void* memory, size_t) noexcept { wt::cuda_executor::free_on_heap(memory); }
void operator delete[](void* memory, size_t) noexcept { wt::cuda_executor::free_on_heap(memory); }
