// Executes bound ops and collectives on SimGrid: when each op starts and ends. It knows no models, layouts or times.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/engine.hpp"
#include "sim/replay/rank_program.hpp"

namespace wt {

/// Numbers for the ops of all simulated ranks. Ranks of one program advance together, so the same op of each rank gets
/// consecutive numbers. An executor's data on ops is then in memory in the order of access.
class OpNumbers {
 public:
  /// The ranks of one program.
  struct Group {
    const RankProgram* program;
    std::size_t first;               ///< number of the first rank's first op
    std::vector<std::size_t> ranks;  ///< op i of ranks[k] has the number first + i * ranks.size() + k
  };

  /// `programs`: one for each rank.
  explicit OpNumbers(const std::vector<const RankProgram*>& programs);

  std::size_t size() const { return size_; }
  std::size_t operator()(std::size_t rank, std::size_t op) const { return first_[rank] + op * stride_[rank]; }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  std::size_t size_ = 0;
  std::vector<std::size_t> first_, stride_;  ///< by rank
  std::vector<Group> groups_;
};

/// One collective of one group instance, with its simulated members.
struct CollectiveTask {
  double latency_s = 0;
  int load = -1;                             ///< index into StepTasks::loads, -1 = none
  double scale = 0;                          ///< multiplies the load's amounts
  std::vector<double> cpu_s;                 ///< of each member, on pool 0 (for ranks that communicate by CPU)
  std::vector<std::pair<int, int>> members;  ///< (rank, op)
};

struct RankTasks {
  const RankProgram* program = nullptr;
  std::vector<double> seconds;  ///< of ops that are not collectives
  std::vector<int> collective;  ///< index into StepTasks::collectives, -1 = none
};

struct StepTasks {
  std::vector<double> capacity;  ///< of the pools, units/s
  std::vector<int> cores;
  std::vector<PoolLoad> loads;
  std::vector<CollectiveTask> collectives;
  std::vector<RankTasks> ranks;
  bool synchronous_host = false;  ///< the host that issues a rank's ops also computes and waits
  bool compute_on_pool = false;   ///< seconds are CPU seconds on pool 0, shared by the ranks; else each rank has a GPU
  double slowdown = 0;  ///< relative loss of a GPU's computing rate while collectives of its rank are in flight
};

struct OpTimes {
  double issued = 0;   ///< its dependencies were done
  double started = 0;  ///< of a collective: when all members had issued it
  double done = 0;
};

/// The program of each rank in `tasks`.
std::vector<const RankProgram*> programs_of(const StepTasks& tasks);

/// Writes the times of every op of every rank, in seconds, to `times`, which has an element for each number of
/// OpNumbers(programs_of(tasks)). Runs SimGrid in this process (see run_in_child). Throws Error{runtime} naming the
/// first op of a deadlock.
void execute(const StepTasks& tasks, std::span<OpTimes> times);

}  // namespace wt
