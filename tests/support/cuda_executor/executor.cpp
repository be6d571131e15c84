#include "tests/support/cuda_executor/executor.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "tests/support/cuda_executor/threads.hpp"

// What kernels read as threadIdx and so on, declared in include/cuda_runtime.h.
wt::cuda_executor::Index3 threadIdx, blockIdx, blockDim, gridDim;

namespace wt::cuda_executor {

Thread* running = nullptr;
Order order;
const Launch* launched = nullptr;

namespace {

std::mt19937_64 random_order{1};
unsigned below(size_t n) { return static_cast<unsigned>(random_order() % n); }

/// Lanes on their way to one instruction.
struct Meeting {
  unsigned mask = 0, arrived = 0;
  const char* instruction = nullptr;
  Where where;
  bool orders_memory = false;
  std::array<uint64_t, kLanes> value{};
};

/// Threads of one warp. Nothing here takes memory for each instruction.
struct Lanes {
  std::array<Thread*, kLanes> of;
  unsigned count = 0;
  void add(Thread& thread) { of[count++] = &thread; }
  Thread** begin() { return of.data(); }
  Thread** end() { return of.data() + count; }
};

/// Lanes of a warp, or an agent alone.
struct Warp {
  Lanes ready;
  std::vector<Meeting> meetings;
  std::array<Thread*, kLanes> lanes{};
};

std::string place(const Where& where) {
  const std::string file = where.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line());
}
bool same_place(const Where& a, const Where& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

/// Stacks are kept for later blocks. A page that cannot be touched ends each.
char* stack_of(size_t number) {
  static std::vector<char*> stacks;
  constexpr size_t kGuard = 4096;
  while (stacks.size() <= number) {
    void* memory = mmap(nullptr, kGuard + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, kGuard, PROT_NONE) != 0) throw std::bad_alloc();
    stacks.push_back(static_cast<char*>(memory) + kGuard);
  }
  return stacks[number];
}

struct OwnStack {  // what boost::context asks for a stack
  char* low;
  boost::context::stack_context allocate() const {
    boost::context::stack_context context;
    context.size = kStackBytes, context.sp = low + kStackBytes;
    return context;
  }
  void deallocate(boost::context::stack_context&) const noexcept {}
};

class Block {
 public:
  explicit Block(const Launch& launch)
      : launch_(launch), count_(size_t{launch.block.x} * launch.block.y * launch.block.z) {
    const auto nothing = std::make_shared<const Clock>();
    for (unsigned z = 0; z < launch.block.z; ++z)
      for (unsigned y = 0; y < launch.block.y; ++y)
        for (unsigned x = 0; x < launch.block.x; ++x) {
          Thread& made = add({x, y, z});
          made.seen = nothing;
          made.warp = made.number / kLanes, made.lane = made.number % kLanes;
          if (made.lane == 0) warps_.emplace_back();
          start(made);
        }
  }

  void run() {
    for (size_t left = threads_.size(); left > 0 && failure_.empty(); left = unfinished_) {
      if (runnable_.empty()) {
        if (!wake_waiting(waiting_.size())) failure_ = stuck();
        continue;
      }
      const unsigned pick = below(runnable_.size()), warp = runnable_[pick];
      const Lanes lanes = std::exchange(warps_[warp].ready, {});
      runnable_[pick] = runnable_.back(), runnable_.pop_back();
      const unsigned first = below(lanes.count);
      for (unsigned i = 0; i < lanes.count && failure_.empty(); ++i) resume(*lanes.of[(first + i) % lanes.count]);
      if (!waiting_.empty()) wake_waiting(1);
    }
    if (!failure_.empty()) throw Failure(failure_);
  }

  [[noreturn]] void fail(Thread& self, const std::string& what) {
    failure_ = fmt::format("block ({}, {}, {}), thread {} ({}, {}, {}){}: {}", blockIdx.x, blockIdx.y, blockIdx.z,
                           self.number, self.index.x, self.index.y, self.index.z,
                           self.name.empty() ? self.agent ? ", an agent" : "" : ", " + self.name, what);
    leave(self);
    std::abort();  // nobody resumes it
  }

  void wait_until(Thread& self, std::function<bool()> ready, const char* what, std::function<std::string()> describes,
                  Where where) {
    self.ready = std::move(ready), self.describes = std::move(describes);
    waiting_.push_back(&self);
    suspend(self, what, where);
  }
  void yield(Thread& self) {
    make_ready(self);
    leave(self);
  }

  /// An agent that has ended and whose end its maker has seen is used again: clocks stay short.
  void spawn(Thread& self, std::function<void()> agent, std::string name) {
    auto seen = std::make_shared<Clock>(*self.seen);
    extend(*seen, self);
    const auto old = std::find_if(ended_agents_.begin(), ended_agents_.end(), [&self](const Thread* ended) {
      return self.has_seen(ended->number) >= ended->last_touch;
    });
    Thread& made = old == ended_agents_.end() ? add(self.index) : **old;
    if (old == ended_agents_.end())
      warps_.emplace_back();
    else
      ended_agents_.erase(old);
    if (!made.agent) made.warp = static_cast<unsigned>(warps_.size() - 1), made.lane = 0;
    made.agent = std::move(agent), made.name = std::move(name);
    made.seen = std::move(seen);
    made.waited_for_previous = self.waited_for_previous;
    ++made.clock, ++self.clock;
    start(made);
  }

  const std::array<uint64_t, kLanes>& meet(Thread& self, unsigned mask, uint64_t value, const char* instruction,
                                           Where where, bool orders_memory) {
    Warp& warp = warps_[self.warp];
    if (!(mask >> self.lane & 1))
      fail(self, fmt::format("{} at {} by lane {}, which its mask {:#010x} does not name", instruction, place(where),
                             self.lane, mask));
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (mask >> lane & 1 && (!warp.lanes[lane] || warp.lanes[lane]->done))
        fail(self, fmt::format("{} at {} names lane {} in its mask {:#010x}, which {}", instruction, place(where), lane,
                               mask, warp.lanes[lane] ? "has ended" : "the block does not have"));
    auto found = warp.meetings.begin();
    for (; found != warp.meetings.end() && !(found->mask & mask); ++found) {
    }
    if (found == warp.meetings.end()) {
      warp.meetings.push_back({mask, 0, instruction, where, orders_memory, {}});
      found = warp.meetings.end() - 1;
    } else if (found->mask != mask || std::strcmp(found->instruction, instruction) != 0 ||
               !same_place(found->where, where)) {
      fail(self, fmt::format("lane {} comes to {} at {} with mask {:#010x} while others wait in {} at {} with mask "
                             "{:#010x}",
                             self.lane, instruction, place(where), mask, found->instruction, place(found->where),
                             found->mask));
    }
    found->arrived |= 1u << self.lane;
    found->value[self.lane] = value;
    if (found->arrived != mask) {
      suspend(self, instruction, where);
      return self.met;
    }
    Lanes all;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      if (mask >> lane & 1) all.add(*warp.lanes[lane]), warp.lanes[lane]->met = found->value;
    if (orders_memory) join(all);
    warp.meetings.erase(found);
    for (Thread* other : all)
      if (other != &self) make_ready(*other);
    return self.met;
  }

  void sync(Thread& self, Where where) {
    if (self.agent) fail(self, "__syncthreads by an agent");
    if (ended_ > 0)
      fail(self, fmt::format("__syncthreads at {} after {} thread{} of the block ended", place(where), ended_,
                             ended_ == 1 ? "" : "s"));
    if (!at_barrier_.empty() && !same_place(at_barrier_[0]->where, where))
      fail(self, fmt::format("__syncthreads at {} while others wait in the one at {}", place(where),
                             place(at_barrier_[0]->where)));
    self.where = where;
    at_barrier_.push_back(&self);
    if (at_barrier_.size() < count_) return suspend(self, "__syncthreads", where);
    std::vector<Thread*> all;
    std::swap(all, at_barrier_);
    join(all);
    for (Thread* other : all)
      if (other != &self) make_ready(*other);
  }

 private:
  Thread& add(Index3 index) {
    Thread& made = threads_.emplace_back();
    made.number = static_cast<unsigned>(threads_.size() - 1);
    made.index = index;
    made.stack = stack_of(made.number);
    return made;
  }

  void start(Thread& thread) {
    warps_[thread.warp].lanes[thread.lane] = &thread;
    thread.done = false;
    ++unfinished_;
    make_ready(thread);
    new (thread.fiber) boost::context::fiber(std::allocator_arg, OwnStack{thread.stack},
                                             [this, &thread](boost::context::fiber&& from) {
                                               thread.scheduler = std::move(from);
                                               if (thread.agent)
                                                 thread.agent();
                                               else
                                                 launch_.body(launch_.arguments);
                                               end(thread);
                                               return std::move(thread.scheduler);
                                             });
  }

  static boost::context::fiber& fiber_of(Thread& thread) {
    return *std::launder(reinterpret_cast<boost::context::fiber*>(thread.fiber));
  }
  void resume(Thread& thread) {
    threadIdx = thread.index;
    running = &thread;
    fiber_of(thread) = std::move(fiber_of(thread)).resume();
    running = nullptr;
  }
  static void leave(Thread& self) {
    self.scheduler = std::move(self.scheduler).resume();
    self.waits_for = nullptr, self.describes = {};
  }
  void suspend(Thread& self, const char* what, Where where) {
    settle_doubt(self);
    self.waits_for = what, self.where = where;
    leave(self);
  }
  void make_ready(Thread& thread) {
    Warp& warp = warps_[thread.warp];
    if (warp.ready.count == 0) runnable_.push_back(thread.warp);
    warp.ready.add(thread);
  }

  void end(Thread& self) {
    settle_doubt(self);
    if (launch_.beside_previous && !self.waited_for_previous)
      fail(self, "ends without having waited for the launch before, which the next launch takes for granted");
    for (const Meeting& meeting : warps_[self.warp].meetings)
      if (!self.agent && meeting.mask >> self.lane & 1)
        fail(self, fmt::format("lane {} ends while others wait for it in {} at {}", self.lane, meeting.instruction,
                               place(meeting.where)));
    if (!self.agent && !at_barrier_.empty())
      fail(self, fmt::format("ends while others wait in __syncthreads at {}", place(at_barrier_[0]->where)));
    self.done = true;
    --unfinished_;
    if (self.agent)
      ended_agents_.push_back(&self);
    else
      ++ended_;
  }

  /// Looks at so many of those in wait_until(), from one of them on; true if it woke one.
  bool wake_waiting(size_t count) {
    const size_t first = waiting_.empty() ? 0 : below(waiting_.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t at = (first + i) % waiting_.size();
      if (!waiting_[at]->ready()) continue;
      make_ready(*waiting_[at]);
      waiting_[at] = waiting_.back(), waiting_.pop_back();
      return true;
    }
    return false;
  }

  std::string stuck() const {
    std::map<std::string, std::vector<const Thread*>> waiting;
    for (const Thread& thread : threads_) {
      if (thread.done) continue;
      const std::string what = thread.describes ? thread.describes() : thread.waits_for;
      waiting[fmt::format("{} at {}", what, place(thread.where))].push_back(&thread);
    }
    std::string text = fmt::format("block ({}, {}, {}): no thread can run;", blockIdx.x, blockIdx.y, blockIdx.z);
    for (const auto& [what, threads] : waiting)
      text +=
          fmt::format(" {} wait{} in {} ({});", threads.size(), threads.size() == 1 ? "s" : "", what, names(threads));
    return text;
  }
  /// "threads 0-31, 64"
  static std::string names(const std::vector<const Thread*>& threads) {
    if (threads[0]->agent) return threads[0]->name;
    std::string text = threads.size() > 1 ? "threads" : "thread";
    for (size_t first = 0, last = 0; first < threads.size(); first = ++last) {
      while (last + 1 < threads.size() && threads[last + 1]->number == threads[last]->number + 1) ++last;
      text += fmt::format("{}{}", first > 0 ? ", " : " ", threads[first]->number);
      if (last > first) text += fmt::format("-{}", threads[last]->number);
    }
    return text;
  }

  static void extend(Clock& clock, const Thread& thread) {
    if (clock.size() <= thread.number) clock.resize(thread.number + 1);
    clock[thread.number] = std::max(clock[thread.number], thread.clock);
  }
  /// All of them have seen what each of them has, and itself; also the end of the launch before.
  template <class Threads>
  static void join(Threads& all) {
    const std::shared_ptr<const Clock> first = (*all.begin())->seen;
    auto joined = std::make_shared<Clock>(*first);
    for (const Thread* thread : all)
      if (thread->seen != first) raise(*joined, *thread->seen);
    bool waited = false;
    for (Thread* thread : all) extend(*joined, *thread), waited |= thread->waited_for_previous;
    for (Thread* thread : all) {
      settle_doubt(*thread);
      thread->seen = joined, thread->waited_for_previous = waited, ++thread->clock;
    }
  }

 public:
  const Thread& thread(unsigned number) const { return threads_[number]; }
  static void raise(Clock& clock, const Clock& other) {
    if (clock.size() < other.size()) clock.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
  }
  static void release(Thread& self, Clock& clock) {
    settle_doubt(self);
    raise(clock, *self.seen);
    extend(clock, self);
    ++self.clock;
  }

 private:
  const Launch& launch_;
  size_t count_, ended_ = 0, unfinished_ = 0;
  std::deque<Thread> threads_;
  std::deque<Warp> warps_;
  std::vector<unsigned> runnable_;  ///< warps with ready lanes
  std::vector<Thread*> waiting_, at_barrier_, ended_agents_;
  std::string failure_;
};

Block* block = nullptr;

}  // namespace

void set_seed(uint64_t seed) { random_order.seed(seed); }

void run(const Launch& launch) {
  order.first_of_launch = order.run + 1;
  std::vector<unsigned> turns(size_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  for (size_t i = 0; i < turns.size(); ++i) turns[i] = static_cast<unsigned>(i);
  std::shuffle(turns.begin(), turns.end(), random_order);
  launched = &launch;
  gridDim = launch.grid, blockDim = launch.block;
  for (const unsigned turn : turns) {
    ++order.run;
    blockIdx = {turn % launch.grid.x, turn / launch.grid.x % launch.grid.y, turn / launch.grid.x / launch.grid.y};
    std::memset(dynamic_shared(), 0xff, launch.shared_bytes);
    Block now(launch);
    block = &now;
    now.run();
  }
}

void fail(const std::string& what) { block->fail(*running, what); }
void wait_until(std::function<bool()> ready, const char* what, Where where) {
  block->wait_until(*running, std::move(ready), what, {}, where);
}
void wait_until(std::function<bool()> ready, std::function<std::string()> what, Where where) {
  block->wait_until(*running, std::move(ready), "", std::move(what), where);
}
unsigned draw_below(unsigned n) { return below(n); }
const Thread& thread_of(unsigned number) { return block->thread(number); }
std::string name_of(const Thread& thread) {
  return fmt::format("thread {} of the block{}", thread.number, thread.name.empty() ? "" : " (" + thread.name + ")");
}
void fence_for_agents() {
  settle_doubt(*running);
  running->fences.push_back(running->clock++);
}
void watch_registers(const void* at, size_t bytes, bool in_flight) {
  running->registers = at, running->register_bytes = bytes, running->registers_in_flight = in_flight;
}
bool& registers_accessed() { return running->registers_accessed; }
void yield() { block->yield(*running); }
void spawn(std::function<void()> agent, std::string name) { block->spawn(*running, std::move(agent), std::move(name)); }
void release(Clock& clock) { Block::release(*running, clock); }
void acquire(const Clock& clock) {
  auto seen = std::make_shared<Clock>(*running->seen);
  Block::raise(*seen, clock);
  running->seen = std::move(seen);
}
const std::array<uint64_t, 32>& meet(unsigned mask, uint64_t value, const char* instruction, Where where) {
  return block->meet(*running, mask, value, instruction, where, false);
}
void sync_warp(unsigned mask, Where where) { block->meet(*running, mask, 0, "__syncwarp", where, true); }
void sync_block(Where where) { block->sync(*running, where); }
void wait_for_previous_launch() { running->waited_for_previous = true; }
unsigned thread_number() { return running->number; }
uint32_t block_run() { return order.run; }

}  // namespace wt::cuda_executor
