// Runs CUDA kernels on the CPU, for tests: every thread of a block is a fiber, blocks run one after the other, and
// warps take turns in an order drawn from a seed. Sources of kernels are compiled by g++ against the headers in
// include/, which stand for CUDA's, with -fsanitize=thread, whose callbacks tell of every load and store (memory.hpp).
//
// What a GPU would let pass or leave undefined throws a Failure out of the launch: a barrier or shuffle that not all
// named threads reach, a read of memory that nothing has written, two accesses that nothing orders (a race), an access
// outside of what was allocated, a wait that nothing ends.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

namespace wt::cuda_executor {

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Of the orders in which warps and blocks run from here on.
void set_seed(uint64_t seed);

struct Index3 {
  unsigned x = 1, y = 1, z = 1;
};

struct Launch {
  Index3 grid, block;
  size_t shared_bytes = 0;              ///< dynamic shared memory
  bool beside_previous = false;         ///< may start before the launch before has ended (programmatic launch)
  void (*body)(const void*) = nullptr;  ///< what a thread runs, with the arguments
  const void* arguments = nullptr;
  size_t argument_bytes = 0;
};
/// Runs the whole grid. Throws Failure.
void run(const Launch& launch);

// For the code that stands for instructions. All of it is called by the thread that runs.

using Where = std::source_location;

/// Ends the launch; run() throws what is said here, with the thread's number.
[[noreturn]] void fail(const std::string& what);

/// Lets other threads run until ready() holds. `what` is named where nothing ever makes it hold.
void wait_until(std::function<bool()> ready, const char* what, Where where = Where::current());
/// The same; `what` is asked for then.
void wait_until(std::function<bool()> ready, std::function<std::string()> what, Where where);
/// Lets other threads run.
void yield();
/// From 0 to n - 1, drawn from the seed.
unsigned draw_below(unsigned n);

/// A thread beside those of the block, as the copy engine is: begins after what its maker has done so far, and the
/// block ends after it. No thread of the block is ordered after it until it acquires what the agent released.
void spawn(std::function<void()> agent, std::string name = {});

/// What this thread wrote before by ordinary stores is for agents to see, once they are ordered after this.
void fence_for_agents();
/// Of the running thread's registers, which lie on its stack: an instruction on its way changes them (`in_flight`), so
/// that an access is a failure; or accesses are noted.
void watch_registers(const void* at, size_t bytes, bool in_flight);
/// Has the thread accessed them since it last said that it knows?
bool& registers_accessed();

/// What has happened before, by thread: the entry of each is how far others have seen it.
using Clock = std::vector<uint32_t>;
/// What this thread did so far is ordered before whatever acquires the clock later.
void release(Clock& clock);
void acquire(const Clock& clock);

/// Waits for the lanes of `mask`, which must all come to the same instruction; the value of each of them, until the
/// next call. Orders no memory.
const std::array<uint64_t, 32>& meet(unsigned mask, uint64_t value, const char* instruction, Where where);
/// Orders memory among the lanes of `mask`.
void sync_warp(unsigned mask, Where where);
void sync_block(Where where);
/// cudaGridDependencySynchronize
void wait_for_previous_launch();

/// The running thread's number within its block, from 0; those that spawn() made come after the block's.
unsigned thread_number();
/// A number for each run of a block; differs between blocks and launches.
uint32_t block_run();

}  // namespace wt::cuda_executor
