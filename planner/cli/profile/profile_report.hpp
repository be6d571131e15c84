// The reports of `windtunnel profile`: one profile, and two compared.
#pragma once
#include <string>

#include "configs/files/profile.hpp"
#include "reports/model/report.hpp"

namespace wt {

/// Machine, software and run; measurements by suite and kernel; reasons against using them. `kernel`: also lists its
/// measurements one by one; "" = none. Throws Error{usage} for an unknown kernel, with the nearest.
Report profile_report(const Profile& profile, const std::string& kernel = "");

/// Facts that differ, and for common measurements the ratio of medians b / a with the 95 % interval of
/// bench/gate/rank_tests.hpp. No verdict: fingerprints may differ, and nothing is tested.
Report difference_report(const Profile& a, const Profile& b);

}  // namespace wt
