#include "tests/support/cuda_executor/sm90.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tests/support/cuda_executor/memory.hpp"
#include "tests/support/cuda_executor/sm90_state.hpp"
#include "tests/support/cuda_executor/threads.hpp"

namespace wt::cuda_executor {

Planted planted = Planted::nothing;

Hopper& hopper() {
  static Hopper state;
  if (state.run == block_run()) return state;
  state = {};
  state.run = block_run();
  state.dynamic_start = 16 * draw_below(1024);
  const unsigned threads = launched->block.x * launched->block.y * launched->block.z;
  // As many as the compiler may use when the kernel's bounds are one block of these threads.
  const int registers = static_cast<int>(std::min(65536 / threads / 8 * 8, 248u));
  for (unsigned w = 0; w < state.warps.size(); ++w) state.warps[w].number = w, state.warps[w].registers = registers;
  return state;
}

void Hopper::same_in_warpgroup(WarpState& warp, std::string instruction) {
  std::vector<std::string>& all = warpgroups[warp.number / 4];
  if (warp.said == all.size())
    all.push_back(std::move(instruction));
  else if (all[warp.said] != instruction)
    fail(fmt::format("{} by warp {}, where another warp of the warpgroup issued {}", instruction, warp.number,
                     all[warp.said]));
  ++warp.said;
}

unsigned char* at_shared(uint32_t address) {
  const uint32_t offset = (address - hopper().dynamic_start) & 0x3ffff;
  if (offset >= launched->shared_bytes)
    fail(
        fmt::format("shared address {} lies outside of the launch's {} bytes of dynamic shared memory, which begin at "
                    "{}",
                    address, launched->shared_bytes, hopper().dynamic_start));
  return dynamic_shared() + offset;
}

namespace {

constexpr unsigned kAllLanes = 0xffffffffu;

/// change(): what of it the manual does not allow becomes a failure.
template <class Change>
void checked(const std::string& what, Change change) {
  std::string wrong;
  try {
    change();
  } catch (const std::logic_error& error) {
    wrong = error.what();
  }
  if (!wrong.empty()) fail(fmt::format("{}: {}", what, wrong));
}

std::string line_of(Where where) { return fmt::format("line {}", where.line()); }

std::string state_of(const Barrier& barrier) {
  return fmt::format("{} (its phase {} runs: {} arrivals and {} bytes to come)", barrier.name, barrier.phases.phase(),
                     barrier.phases.pending(), barrier.phases.bytes());
}

Barrier& barrier_at(uint64_t* at, Where where) {
  touch(at, 8, Access::read);  // after its initialisation
  const auto found = hopper().barriers.find(at);
  if (found == hopper().barriers.end()) fail("a barrier that is not initialised, at " + line_of(where));
  return found->second;
}

/// All that come to the phase have come: the phase's waiters are after them.
template <class Change>
void change_phase(Barrier& barrier, const std::string& what, Change change) {
  release(barrier.coming);
  const uint64_t before = barrier.phases.phase();
  checked(fmt::format("{} on {}", what, state_of(barrier)), [&] { change(barrier.phases); });
  if (barrier.phases.phase() != before) barrier.over = barrier.coming;
}

void wait_some_time() {
  const unsigned most = draw_below(2) ? 4 : 400;
  for (unsigned turns = draw_below(most); turns > 0; --turns) yield();
}

/// A copy in progress: rows come one after another; bytes are told of in pieces.
void copy_rows(const TensorMap& map, uint32_t target, Barrier& barrier, const std::array<int, 5>& corner) {
  wait_some_time();
  uint32_t untold = 0;
  const std::string what = "bytes of " + name_of(*running);
  const auto tell = [&] {
    change_phase(barrier, what, [&](Phases& phases) { phases.complete(untold); });
    untold = 0;
  };
  map.each_row(corner, [&](uint32_t row, const unsigned char* from, uint32_t first, uint32_t count) {
    std::array<unsigned char, 256 * 8> bytes{};
    if (count > 0) {
      touch(from, count * map.element_bytes, Access::read);
      std::memcpy(bytes.data() + first * map.element_bytes, from, count * map.element_bytes);
    }
    for (uint32_t unit = 0; unit < map.row_bytes() / kUnit; ++unit) {
      unsigned char* const to = at_shared(map.address(target, row, unit));
      touch(to, kUnit, Access::write);
      std::memcpy(to, bytes.data() + unit * kUnit, kUnit);
    }
    untold += map.row_bytes();
    if (draw_below(16) == 0) tell(), yield();
  });
  if (untold > 0) tell();
}

}  // namespace

uint32_t shared_address(const void* in_dynamic) {
  const size_t offset = static_cast<size_t>(static_cast<const unsigned char*>(in_dynamic) - dynamic_shared());
  if (offset >= kMostSharedBytes) fail("the shared address of what is not in dynamic shared memory");
  return hopper().dynamic_start + static_cast<uint32_t>(offset);
}

void barrier_init(uint64_t* at, int arrivals) {
  if (planted == Planted::one_arrival && arrivals > 1) --arrivals;
  touch(at, 8, Access::write);
  Barrier& barrier = hopper().barriers[at];
  if (barrier.initialised_by) fail(barrier.name + " is initialised twice");
  checked("mbarrier.init", [&] { barrier.phases = Phases(arrivals); });
  barrier.name =
      fmt::format("mbarrier {} of {} arrival{}", hopper().barriers_made++, arrivals, arrivals == 1 ? "" : "s");
  barrier.initialised_by = running;
}
void barrier_init_done() {
  if (planted == Planted::no_init_done) return;
  for (auto& [at, barrier] : hopper().barriers) barrier.fenced = barrier.fenced || barrier.initialised_by == running;
}

void barrier_arrive(uint64_t* at, Where where) {
  change_phase(barrier_at(at, where), "mbarrier.arrive at " + line_of(where), [](Phases& phases) { phases.arrive(); });
}

void barrier_expect(uint64_t* at, int bytes, Where where) {
  if (planted == Planted::few_bytes) bytes -= 16;
  if (planted == Planted::many_bytes) bytes += 16;
  change_phase(barrier_at(at, where), "mbarrier.arrive.expect_tx at " + line_of(where),
               [bytes](Phases& phases) { phases.expect(bytes), phases.arrive(); });
}

void barrier_wait(uint64_t* at, uint32_t parity, Where where) {
  const bool producer = running->number < 32;
  if (planted == (producer ? Planted::empty_phase : Planted::full_phase)) parity ^= 1;
  Barrier& barrier = barrier_at(at, where);
  if (!barrier.phases.over(parity))
    wait_until(
        [&barrier, parity] { return barrier.phases.over(parity); },
        [&barrier, parity] { return fmt::format("mbarrier.try_wait for parity {} on {}", parity, state_of(barrier)); },
        where);
  acquire(barrier.over);
}

void copy_box(const TensorMap& map, uint32_t target, uint64_t* at, const std::array<int, 5>& corner, Where where) {
  Barrier& barrier = barrier_at(at, where);
  if (!barrier.fenced) fail("a copy to " + barrier.name + ", whose initialisation no fence.mbarrier_init follows");
  if (map.wrong()) fail("a copy with what is no tensor map, at " + line_of(where));
  if (map.swizzle != Swizzle::none && map.row_bytes() != span_of(map.swizzle))
    fail("a box narrower than its swizzle, which is not modelled");
  if (target % 128 != 0) fail(fmt::format("a copy to shared address {}; allowed multiples of 128", target));
  at_shared(target), at_shared(target + map.bytes() - 1);
  spawn([map, target, &barrier, corner] { copy_rows(map, target, barrier, corner); },
        fmt::format("the copy of box ({}, {}, {}) by thread {}, {}", corner[0], corner[1], corner[2], running->number,
                    line_of(where)));
}

void fence_async_proxy() {
  if (planted != Planted::no_async_fence) fence_for_agents();
}

void named_barrier(unsigned number, unsigned threads, Where where) {
  if (planted == Planted::no_named_barrier) return;
  if (number < 1 || number > 15 || threads == 0 || threads % kLanes != 0)
    fail(fmt::format("bar.sync {}, {}; allowed numbers 1 to 15 (0 is __syncthreads'), and whole warps", number,
                     threads));
  meet(kAllLanes, threads, "bar.sync", where);
  NamedBarrier& barrier = hopper().named[number];
  if (barrier.arrived > 0 && barrier.threads != threads)
    fail(fmt::format("bar.sync {} of {} threads where others wait for {}", number, threads, barrier.threads));
  barrier.threads = threads;
  release(barrier.coming);
  const uint64_t round = barrier.round;
  if (++barrier.arrived == threads)
    barrier.arrived = 0, ++barrier.round, barrier.over = barrier.coming;
  else
    wait_until([&barrier, round] { return barrier.round != round; },
               [&barrier, number] {
                 return fmt::format("bar.sync {} ({} of {} threads there)", number, barrier.arrived, barrier.threads);
               },
               where);
  acquire(barrier.over);
}

void change_registers(int count, bool more, Where where) {
  if (planted == Planted::many_registers && more) count += 8;
  meet(kAllLanes, static_cast<uint64_t>(count), "setmaxnreg", where);
  WarpState& warp = hopper().warps[running->warp];
  if (running->lane == 0) {
    hopper().same_in_warpgroup(warp, fmt::format("setmaxnreg {} at {}", count, line_of(where)));
    if (count < 24 || count > 256 || count % 8 != 0)
      fail(fmt::format("setmaxnreg {}; allowed 24 to 256 in steps of 8", count));
    if (more ? count < warp.registers : count > warp.registers)
      fail(fmt::format("setmaxnreg.{} to {} of a warp of {}", more ? "inc" : "dec", count, warp.registers));
    const int taken = (count - warp.registers) * static_cast<int>(kLanes);
    while (taken > 0 && taken > hopper().free_registers)  // others may be quicker
      wait_until([taken] { return taken <= hopper().free_registers; },
                 [count, taken] {
                   return fmt::format("setmaxnreg.inc to {} ({} registers, of which {} are free)", count, taken,
                                      hopper().free_registers);
                 },
                 where);
    hopper().free_registers -= taken;
    warp.registers = count;
  }
  meet(kAllLanes, 0, "setmaxnreg", where);
}

}  // namespace wt::cuda_executor
