// What `windtunnel profile` says of one profile, and of two side by side.
#pragma once
#include <string>

#include "configs/files/profile.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Machine, software and run, measurements by suite and kernel, and what speaks against using them. `kernel`: its
/// measurements one by one, too; "" for none. Throws Error{usage} for a kernel that is not there, naming the nearest.
Report profile_report(const Profile& profile, const std::string& kernel = "");

/// Facts that differ and, of measurements that both have, the ratio of medians b / a with the 95 % interval of
/// bench/gate/rank_tests.hpp. A look, no verdict: fingerprints may differ, nothing is tested.
Report difference_report(const Profile& a, const Profile& b);

}  // namespace wt
