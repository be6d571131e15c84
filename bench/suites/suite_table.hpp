// The result table of `windtunnel bench`.
#pragma once
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

/// Name, median, spread (80 % of the samples), rate of each measurement: GFLOP/s for products and attention, GB/s for
/// everything else, of collectives the algorithm bandwidth; and their bus bandwidth (nccl-tests' algbw and busbw). A
/// benchmark that failed keeps its row, with the reason.
std::string bench_table(const Profile& profile);

/// How many measurements were taken on a throttled device, and for which reasons; "" = none.
std::string throttling_note(const Profile& profile);

}  // namespace wt
