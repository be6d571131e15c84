// The result table of `windtunnel bench`.
#pragma once
#include <string>

#include "configs/spec/profile.hpp"

namespace wt {

/// Name, median, spread (80 % of the samples) and rate of each measurement: GFLOP/s for products and attention, GB/s
/// for everything else.
std::string bench_table(const Profile& profile);

}  // namespace wt
