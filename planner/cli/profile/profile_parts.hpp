// Shared by the reports of `windtunnel profile`.
#pragma once

#include <string>

#include "configs/files/profile.hpp"
#include "planner/cli/parts/cells.hpp"

namespace wt::profile_parts {

/// "trace/gemm" for "trace/gemm/NAME", because traces have hundreds of kernels.
inline std::string group_of(const Measurement& m) {
  if (!m.kernel.starts_with("trace/")) return m.kernel;
  return m.kernel.substr(0, m.kernel.find('/', 6));
}

inline std::string fact(const Profile& profile, const std::string& key) {
  const auto found = profile.fingerprint.find(key);
  return found == profile.fingerprint.end() ? "" : found->second;
}

}  // namespace wt::profile_parts
