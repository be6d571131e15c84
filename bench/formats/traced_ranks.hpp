// Traces of several ranks of one job, of the same steps: which rank computes longest, and how long the others wait for
// it. Clocks of the ranks are not compared: a collective ends for all ranks at about the same time, so that the one
// whose collective is shortest came last, and what the others' take beyond that is waiting.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "bench/formats/gpu_trace.hpp"

namespace wt {

struct RankTime {
  std::int64_t rank = 0;
  double compute_s = 0;  ///< some kernel computes
  double exposed_s = 0;  ///< a collective runs and nothing computes
  double wait_s = 0;     ///< of that, beyond the shortest of the same collective
  double caused = 0;     ///< share of all waiting, hidden or not, in collectives to which it came last
};

/// Sums over whole traces.
struct TracedRanks {
  std::vector<RankTime> ranks;   ///< ascending
  std::int64_t collectives = 0;  ///< that at least two of the ranks have in common
  std::size_t slowest = 0;       ///< of `ranks`: computes longest
  double behind_s = 0;           ///< that rank's computation beyond the median of the others
  double others_wait_s = 0;      ///< median of the others
  const RankTime& slow() const { return ranks.at(slowest); }
};

/// Of at least two traces; `files` are their names for errors. Send and receive are left out: a stage of a pipeline
/// waits in them by design. Throws Error{usage} for traces that do not say their rank, of the same rank twice, of jobs
/// of different size, of other steps, and without a collective that two of them have in common.
TracedRanks traced_ranks(const std::vector<GpuTrace>& traces, const std::vector<std::string>& files);

}  // namespace wt
