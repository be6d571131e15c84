// Executes a plan of ops and collectives on SimGrid: when does each op start and end. It knows nothing of models,
// layouts or prices; everything is bound beforehand.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/engine.hpp"
#include "sim/replay/op_numbers.hpp"
#include "sim/replay/rank_program.hpp"

namespace wt {

/// One collective of one group instance, with those of its members that are simulated.
struct CollectiveTask {
  double latency_s = 0;
  int load = -1;                             ///< index into StepTasks::loads, -1 = none
  double scale = 0;                          ///< times the load's amounts
  std::vector<double> cpu_s;                 ///< of each member, on pool 0 (ranks that communicate by CPU)
  std::vector<std::pair<int, int>> members;  ///< (rank, op)
};

struct RankTasks {
  const RankProgram* program = nullptr;
  std::vector<double> seconds;  ///< of ops that are no collectives
  std::vector<int> collective;  ///< index into StepTasks::collectives, -1 = none
};

struct StepTasks {
  std::vector<double> capacity;  ///< of the pools, units/s
  std::vector<int> cores;
  std::vector<PoolLoad> loads;
  std::vector<CollectiveTask> collectives;
  std::vector<RankTasks> ranks;
  bool synchronous_host = false;  ///< ops of a rank are issued by a host that computes and waits itself
  bool compute_on_pool = false;   ///< seconds are CPU seconds on pool 0, shared by the ranks; else a GPU's own
  double slowdown = 0;  ///< share of its rate that a GPU computes less by while collectives of its rank are in flight
};

struct OpTimes {
  double issued = 0;   ///< its waits were done and its turn had come
  double started = 0;  ///< of a collective: all members had issued it
  double done = 0;
};

/// The program of each of the tasks' ranks.
std::vector<const RankProgram*> programs_of(const StepTasks& tasks);

/// Seconds of every op of every rank, by OpNumbers of programs_of(tasks), into `times`, which has one for each. Runs
/// SimGrid in this process (see run_in_child). Throws Error{runtime} naming the first op of a deadlock.
void execute(const StepTasks& tasks, std::span<OpTimes> times);

}  // namespace wt
