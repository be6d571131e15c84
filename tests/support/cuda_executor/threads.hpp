// Inside of the executor: the state of a thread and of the launch that runs.
#pragma once
#include <boost/context/fiber.hpp>

#include "tests/support/cuda_executor/executor.hpp"
#include "tests/support/cuda_executor/memory.hpp"

namespace wt::cuda_executor {

constexpr size_t kStackBytes = 128 << 10;
constexpr unsigned kLanes = 32;

/// A write that raced with one before: allowed if it leaves the bytes as they were.
struct DoubtfulWrite {
  const unsigned char* at = nullptr;
  std::vector<unsigned char> before;
  std::string race;
};

struct Thread {
  unsigned number = 0;
  unsigned warp = 0, lane = 0;
  Index3 index;
  char* stack = nullptr;
  uint32_t clock = 1, last_touch = 0;  ///< the second: its clock when it last touched memory
  std::shared_ptr<const Clock> seen;   ///< of the others
  bool done = false, waited_for_previous = false;
  const char* waits_for = nullptr;  ///< null while it can run
  Where where;
  std::function<bool()> ready;             ///< of wait_until()
  std::function<std::string()> describes;  ///< what it waits for, if `waits_for` does not say it
  std::function<void()> agent;             ///< of spawn()
  std::string name;
  std::vector<uint32_t> fences;  ///< its clock at each fence_for_agents()
  const void* registers = nullptr;
  size_t register_bytes = 0;
  bool registers_in_flight = false, registers_accessed = true;
  std::array<uint64_t, kLanes> met{};
  DoubtfulWrite doubtful;
  boost::context::fiber scheduler;
  /// Never destroyed: a failed launch leaves its fibers where they are, without unwinding.
  alignas(boost::context::fiber) unsigned char fiber[sizeof(boost::context::fiber)];

  uint32_t has_seen(size_t other) const { return other < seen->size() ? (*seen)[other] : 0; }
};

/// The thread that runs, or null on the host.
extern Thread* running;

/// How runs of blocks, which are counted from 2, are ordered: 1 is the host.
struct Order {
  uint32_t run = 1;              ///< of the block that runs
  uint32_t first_of_launch = 2;  ///< runs below it are of launches before
};
extern Order order;
extern const Launch* launched;
/// Of the block that runs.
const Thread& thread_of(unsigned number);
std::string name_of(const Thread& thread);

/// A write of the running thread whose value was to be looked at after it.
void settle_doubt(Thread& thread);

}  // namespace wt::cuda_executor
