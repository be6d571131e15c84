// The short check of one node: all cores compute and copy at once, a file is written and read back, and the NICs'
// counters are watched meanwhile. bench/suites/health_ranks.hpp has the checks with GPUs or several nodes.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/health/observation.hpp"

namespace wt {

/// Repetitions of products and of copies.
inline int stress_repetitions(bool quick) { return quick ? 7 : 15; }

struct CollectOptions {
  bool quick = false;                   ///< fewer repetitions and a quarter of the file: 2 s instead of 5
  std::filesystem::path storage = ".";  ///< folder to write in
  std::filesystem::path sysfs = "/sys";
};

/// The node is named after the host and has a device per usable core. Core times are CPU seconds of their thread, so
/// that other programs on the core do not count. `starting` is called as each part begins. If the folder cannot be
/// written, or returns other bytes, `failures` says so.
NodeObservation collect_node(const CollectOptions& options, const std::function<void(const std::string&)>& starting);

/// Counters since boot and the current state, from /sys/class/net (physical devices that are up) and
/// /sys/class/infiniband. `errors` has every error counter.
std::vector<NicObservation> read_nics(const std::filesystem::path& sysfs);
/// The increases between two readings; a NIC that is only in `after` counts from 0.
std::vector<NicObservation> increases_between(const std::vector<NicObservation>& before,
                                              std::vector<NicObservation> after, double seconds);

/// The kernel's messages since boot; "" where this user may not read them.
std::string kernel_log();

}  // namespace wt
