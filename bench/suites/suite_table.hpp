// The result table of `windtunnel bench`.
#pragma once
#include <string>

#include "configs/files/profile.hpp"

namespace wt {

/// Name, median, spread (of the middle 80 % of the samples) and rate of each measurement: GFLOP/s for products and
/// attention, GB/s for everything else. Collectives have algorithm and bus bandwidth (nccl-tests' algbw and busbw). A
/// failed benchmark keeps its row, with the reason.
std::string bench_table(const Profile& profile);

/// The number of measurements on a throttled device, with the reasons; "" = none.
std::string throttling_note(const Profile& profile);

}  // namespace wt
