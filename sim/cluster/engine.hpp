// The thin adapter around SimGrid 3.32: shared pools, work that loads them, and delays. Only this folder includes
// SimGrid headers, so a new SimGrid version changes little.
//
// A pool is a SimGrid host whose speed is the pool's capacity (bytes/s of a link direction, or CPU seconds/s of a
// core). A load is a parallel task with an amount for each pool. The ptask_L07 host model advances all amounts of a
// load together, at the pace of its most contended pool, and shares each pool max-min fairly between loads. SimGrid's
// links would give the same linear system. But a parallel task over links needs a dense hosts^2 matrix, and a route for
// each entry.
//
// SimGrid solves only what is shared. A load that has its pools to itself advances at the pace of its slowest pool,
// without the solver. When another load wants one of its pools, its remaining part is handed to SimGrid. Nine in ten of
// the 134,000 loads of a step on 3,072 GPUs never share. SimGrid gets only the pools that can limit a load (PoolUsers),
// because it walks all pools of all loads at each stop of its clock, and those of one load quadratically at its start
// and end.
//
// Multi-core pools, by experiment with ptask_L07 (tests/property/replay.cpp repeats it): on a host of 2 cores, 1
// execution of 1 s takes 1 s, 3 take 1.5 s, 4 take 2 s. So an execution uses at most one core, as it should.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "sim/cluster/pool_load.hpp"

namespace wt {

/// Which loads SimGrid solves: those that share a pool, or all (slower, with the same result).
enum class Solver { when_shared, always };

/// One simulation. SimGrid's engine is a singleton that aborts on misuse: use it inside run_in_child only.
class Engine {
 public:
  /// Calls `on_event` with the token of each delay or load that ends, at its simulated time.
  explicit Engine(std::function<void(std::int64_t token)> on_event, Solver solver = Solver::when_shared);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// `capacity`: units per second of the whole pool. A load on this pool alone gets at most capacity / cores.
  int add_pool(double capacity, int cores = 1);
  /// Call after the last add_pool and before the first delay or load.
  void seal();
  void delay(double seconds, std::int64_t token);
  /// `scale` multiplies the amounts. `load` must outlive the load's end.
  void load(const PoolLoad& load, double scale, std::int64_t token);
  double now() const;
  /// Runs until no event is left.
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wt
