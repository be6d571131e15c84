// The thin adapter around SimGrid 3.32: pools that are shared, work that loads them, and delays. Nothing else of the
// project includes a SimGrid header, so a later SimGrid is a change of one file.
//
// A pool is a SimGrid host whose speed is the pool's capacity (bytes/s of a link direction, or CPU seconds/s of a
// core); a load is a parallel task with an amount for each pool. The ptask_L07 host model lets all amounts of one load
// progress together, at the pace of its most contended pool, and shares each pool max-min fairly between loads. Links
// would give the same linear system, but a parallel task over links wants a dense hosts^2 matrix and walks routes for
// each entry.
//
// SimGrid solves what is shared. A load that has its pools to itself goes on at the pace of its slowest pool, which
// needs no solver: it takes part in the sharing from the moment another load wants one of its pools, with what is left
// of it. Of the 134,000 loads of a step on 3,072 GPUs nine in ten never share. Of a load that does, SimGrid knows the
// pools that can hold it up (PoolUsers): it walks all pools of all its loads at every stop of its clock, and those of
// one load quadratically when one starts or ends.
//
// Multi-core pools, by experiment with ptask_L07 (tests/property/replay.cpp repeats it): on a host of 2 cores, 1
// execution of 1 s takes 1 s, 3 take 1.5 s, 4 take 2 s. So an execution uses at most one core and no other model is
// needed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "sim/cluster/pool_load.hpp"

namespace wt {

/// Which loads SimGrid solves: those that meet another on a pool, or all (slower, with the same result).
enum class Solver { when_shared, always };

/// One simulation. SimGrid's engine is a singleton that aborts on misuse: use it inside run_in_child only.
class Engine {
 public:
  /// `on_event` is called with the token of each delay or load that ended, at its simulated time.
  explicit Engine(std::function<void(std::int64_t token)> on_event, Solver solver = Solver::when_shared);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Units per second of the whole pool; a load that names this pool alone gets at most capacity / cores.
  int add_pool(double capacity, int cores = 1);
  /// Call after the last add_pool and before the first delay or load.
  void seal();
  void delay(double seconds, std::int64_t token);
  /// `scale` times the amounts. The load must stay where it is until its end.
  void load(const PoolLoad& load, double scale, std::int64_t token);
  double now() const;
  /// Until nothing is left to happen.
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wt
