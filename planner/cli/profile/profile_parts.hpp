// Shared by the reports of `windtunnel profile`.
#pragma once

#include <string>

#include "configs/base/lookup.hpp"
#include "configs/files/profile.hpp"
#include "planner/cli/parts/cells.hpp"

namespace wt::profile_parts {

/// "trace/gemm" for "trace/gemm/NAME", because traces have hundreds of kernels.
inline std::string group_of(const Measurement& m) {
  if (!m.kernel.starts_with("trace/")) return m.kernel;
  return m.kernel.substr(0, m.kernel.find('/', 6));
}

inline std::string fact(const Profile& profile, const std::string& key) { return value_or(profile.fingerprint, key); }

}  // namespace wt::profile_parts
